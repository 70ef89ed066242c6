-- How far a time can be trusted. All records that are there are claimed: version 0.2 believed what callers said.
alter table aoc_records add column grade text check (grade in ('verified', 'measured'));
alter table aoc_records add column details jsonb;

comment on column aoc_records.grade is 'assigned by the server alone; null stands for claimed';
comment on column aoc_records.details is 'what is known of the run beside its time: tries, tokens, agent and so on';

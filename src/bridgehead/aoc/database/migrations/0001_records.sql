-- A day's revision grows with every write to it, under the lock of its row. So the records of a day have one
-- order that all replicas agree on, and "what is newer than what I have seen" has an exact answer.
create table aoc_days (
    year smallint not null,
    day smallint not null,
    revision bigint not null,
    rewritten bigint not null default 0,
    primary key (year, day)
);

comment on column aoc_days.rewritten is 'the last revision that changed a record that was there before';

create table aoc_records (
    id bigint generated always as identity primary key,
    year smallint not null,
    day smallint not null,
    phase smallint not null check (phase in (1, 2)),
    llm text not null check (llm <> ''),
    time bigint not null check (time >= 0),
    moment text not null,
    measure text check (measure in ('solving', 'execution')),
    source text check (source in ('claimed', 'measured')),
    withdrawn text,
    revision bigint not null,
    key uuid not null
);

comment on column aoc_records.moment is 'when, as it was written: ISO 8601 with milliseconds where it is ours';
comment on column aoc_records.key is 'of the request that made it, so that a request sent again is stored once';

create unique index aoc_records_key on aoc_records (key);
create index aoc_records_day on aoc_records (year, day, revision);

create table aoc_steps (
    id bigint generated always as identity primary key,
    year smallint not null,
    day smallint not null,
    attempt text not null,
    step jsonb not null,
    key uuid not null
);

create unique index aoc_steps_key on aoc_steps (key);
create index aoc_steps_day on aoc_steps (year, day, id);
create index aoc_steps_attempt on aoc_steps (attempt, id);

create table aoc_aliases (
    name text primary key,
    llm text not null
);

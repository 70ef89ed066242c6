-- A page of the history is read from the newest run on, day by day, without sorting the day. Moments are texts in
-- UTC that end in Z and sort as they are; one in another form, taken in from another program, is converted here.
alter table aoc_records add column moment_utc text;

comment on column aoc_records.moment_utc is 'the moment in UTC, without Z, where it was written in another form; empty if it cannot be read';

create function pg_temp.in_utc(moment text) returns text language plpgsql as $$
begin
    if moment !~ '^\d{4}-\d\d-\d\d' then
        return '';
    end if;
    return to_char(moment::timestamptz at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US');
exception when data_exception then
    return '';
end $$;

update aoc_records set moment_utc = pg_temp.in_utc(moment) where moment not like '%Z';

create index aoc_records_moment on aoc_records
    (year, day, (coalesce(moment_utc, left(moment, -1)) collate "C"), id);

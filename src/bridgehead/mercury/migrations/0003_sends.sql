-- Running totals of committed money for each period (a day or a month) and payer; '' is everybody.
-- A reservation locks at most four of these rows, however much was spent.
create table mercury_budget (
    period text not null,
    payer text not null,
    committed_usd numeric not null,
    primary key (period, payer)
);

-- Sends whose end is not known yet, and for a while those that have ended. An open send past its
-- reserved_until is uncertain: its process died, or said so.
create table mercury_sends (
    id text primary key,
    day text not null,
    -- Empty if no budget holds the money: then the row is the sum of a day's uncertain sends.
    payer text not null,
    model text not null,
    client text not null,
    sends bigint not null,
    usd numeric not null,
    state text not null check (state in ('open', 'settled', 'released')),
    reserved_until timestamptz not null
);

create index mercury_sends_open on mercury_sends (day) where state = 'open';
create index mercury_sends_ended on mercury_sends (reserved_until) where state = 'settled';

-- Version 0.2 handed budgets out in portions. All that was spent is below what was handed out.
insert into mercury_budget select period, client, allotted / 1000000.0 from mercury_allotments;
drop table mercury_allotments;

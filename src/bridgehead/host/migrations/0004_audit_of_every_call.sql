-- Every call has a line now, and refusals too. Version 0.3 goes on writing its own lines.
alter table host_audit
    add column arguments text not null default '',
    add column reason text not null default '',
    add column bytes bigint,
    add column cost_usd double precision;

-- What was ever allotted of a budget, in millionths of a dollar. All that replicas have spent is below it.
create table mercury_allotments (
    period text not null,
    client text not null,
    allotted bigint not null,
    -- Where the last portion began, and the limit that it was allotted under.
    begun bigint not null,
    most bigint not null,
    primary key (period, client)
);

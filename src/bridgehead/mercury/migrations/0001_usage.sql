create table mercury_usage (
    day text not null,
    model text not null,
    client text not null,
    calls bigint not null,
    errors bigint not null,
    cache_hits bigint not null,
    prompt_tokens bigint not null,
    completion_tokens bigint not null,
    total_tokens bigint not null,
    cost_usd numeric not null,
    unpriced bigint not null,
    primary key (day, model, client)
);

-- What a replica has added, so that what it sends again is not added again.
create table mercury_usage_batches (
    id uuid primary key,
    at timestamptz not null default now()
);

create index mercury_usage_batches_at on mercury_usage_batches (at);

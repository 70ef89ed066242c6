-- Of a token's secret only the hash is here. Whoever changes the table, by whatever means, wakes every host.
create table host_tokens (
    id text primary key,
    name text not null unique,
    entry jsonb not null
);

create function host_tokens_changed() returns trigger language plpgsql as $$
begin
    perform pg_notify('bridgehead_tokens', '');
    return null;
end
$$;

create trigger host_tokens_changed after insert or update or delete or truncate on host_tokens
    for each statement execute function host_tokens_changed();

create table host_audit (
    id bigint generated always as identity primary key,
    at timestamptz not null,
    replica text not null,
    bridge text not null,
    tool text not null,
    client text not null,
    outcome text not null,
    ms double precision not null,
    request text not null,
    key uuid not null unique
);

create index host_audit_at on host_audit (at);
create index host_audit_client on host_audit (client, at);

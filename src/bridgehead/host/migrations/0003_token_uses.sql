-- When each token was last used. Not in host_tokens: a change there wakes every host.
create table host_token_uses (
    id text primary key references host_tokens (id) on delete cascade,
    used timestamptz not null
);

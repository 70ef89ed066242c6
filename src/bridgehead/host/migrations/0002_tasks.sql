-- Tasks: that one was made, and how it ended. While it runs, only the process that runs it knows more.
create table host_tasks (
    id text primary key,
    owner text not null,
    caller text not null,
    created double precision not null,
    updated double precision not null,
    seconds double precision not null,
    status text not null,
    message text not null,
    payload bytea not null,
    expires double precision not null,
    runner text not null
);

create index host_tasks_caller on host_tasks (caller);
create index host_tasks_expires on host_tasks (expires);

-- Every process that runs tasks renews its lease here. An unfinished task without one is interrupted.
create table host_task_runners (
    runner text primary key,
    leased_until timestamptz not null
);

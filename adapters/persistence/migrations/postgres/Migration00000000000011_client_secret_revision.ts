export const statements = [`alter table "clients" add "secret_revision" int not null default 0, add "former_secret_until" bigint null;`];

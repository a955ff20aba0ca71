#!/bin/sh
# Runs once, when PostgreSQL creates its data: the user and the database of the service. The user owns its database and nothing else.
set -eu
psql --username "${POSTGRES_USER:-postgres}" --dbname postgres --set ON_ERROR_STOP=1 \
  --set password="$(cat "${VIDIMUS_PASSWORD_FILE:-/run/secrets/postgres-password}")" <<'SQL'
create role vidimus login nosuperuser nocreatedb nocreaterole noreplication password :'password';
create database vidimus owner vidimus;
revoke all on database vidimus from public;
SQL

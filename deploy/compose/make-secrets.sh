#!/bin/sh
# Makes what compose.yaml needs and what is nobody's business: `make-secrets.sh <host>`, once. What is there already stays
# as it is: without its secrets nothing in a database opens.
set -eu
host="${1:?usage: make-secrets.sh <host name of the service>}"
folder="$(cd "$(dirname "$0")" && pwd)"
secrets="$folder/secrets"
umask 077
mkdir -p "$secrets"

random() { openssl rand -hex "$1"; }
keep() { [ ! -e "$1" ] || { echo "$1 is there and stays" >&2; return 1; }; }

if keep "$secrets/vidimus.env"; then
  postgres="$(random 24)"
  rabbitmq="$(random 24)"
  printf '%s' "$postgres" > "$secrets/postgres-password"
  printf 'default_user = vidimus\ndefault_pass = %s\n' "$rabbitmq" > "$secrets/rabbitmq.conf"
  cat > "$secrets/vidimus.env" <<END
MASTER_SECRET=$(random 48)
AUTH_CLIENT_ID=operator
AUTH_CLIENT_SECRET=$(random 24)
DATABASE_URL=postgres://vidimus:$postgres@postgres:5432/vidimus
AMQP_URL=amqp://vidimus:$rabbitmq@rabbitmq:5672
VAULT_SECRET_ID=$(random 24)
END
fi

if keep "$secrets/postgres-admin-password"; then
  printf '%s' "$(random 24)" > "$secrets/postgres-admin-password"
fi

# To try it with: wallets trust none that signs itself. Put that of an authority in its place.
if keep "$secrets/tls-key.pem"; then
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 90 -subj "/CN=$host" \
    -addext "subjectAltName=DNS:$host" -keyout "$secrets/tls-key.pem" -out "$secrets/tls-certificate.pem" 2>/dev/null
fi

# Compose mounts these files as they are, and every image runs as another account: the folder is what keeps others out.
chmod 700 "$secrets"
chmod 644 "$secrets"/*

keep "$folder/../.env" || exit 0
printf 'COMPOSE_PROJECT_NAME=vidimus\nPUBLIC_URL=https://%s\n' "$host" > "$folder/../.env"

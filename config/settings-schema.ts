import { isIP } from 'node:net';
import { z } from 'zod';
import { FOREIGN_ALGORITHMS } from '../domain/oauth/foreign-token.ts';
import {
  amqpUrl,
  anchors,
  claimName,
  databaseUrl,
  duration,
  isNetwork,
  issuerUrl,
  list,
  listenAddress,
  masterSecret,
  oneOf,
  proxies,
  publicUrl,
  ratio,
  wholeNumber,
  workers,
} from './setting-values.ts';

const TENANT = /^[a-z0-9][a-z0-9-]{0,62}$/;
const HOST_PORT = /^(?<host>\[[0-9a-f:.]+\]|[^[\]:\s/]+)(?::(?<port>\d{1,5}))?$/;
const LABEL = /^[a-z0-9_]([a-z0-9_-]*[a-z0-9])?$/;

/** Hosts and networks, each for all tenants or for one: `backend.example`, `acme=10.0.0.0/8`. */
const outboundAllow = list.transform((entries, context): readonly string[] => {
  for (const entry of entries) {
    const fault = findEntryProblem(entry);
    if (fault !== undefined) context.addIssue(`"${entry}" ${fault}`);
  }
  return entries;
});

function findEntryProblem(entry: string): string | undefined {
  const split = entry.indexOf('=');
  if (split >= 0 && !TENANT.test(entry.slice(0, split).trim())) {
    return 'names no tenant before the =; an entry for one tenant is written <tenant>=<host>';
  }
  const target = entry
    .slice(split + 1)
    .trim()
    .toLowerCase();
  if (target.includes('/') ? isNetwork(target) : isIP(target) !== 0 || isHostPort(target)) return undefined;
  return (
    'is neither a host (backend.example, *.example) nor a network (10.0.0.0/8) nor an address, each host or address ' +
    'also with a port (127.0.0.1:8080), and each also for one tenant (acme=backend.example)'
  );
}

function isHostPort(target: string): boolean {
  const { host = '', port = '1' } = HOST_PORT.exec(target)?.groups ?? {};
  if (Number(port) < 1 || Number(port) > 65_535) return false;
  if (host.startsWith('[')) return isIP(host.slice(1, -1)) === 6;
  if (isIP(host) === 4) return true;
  const labels = host.replace(/^\*\./, '').split('.');
  // The URL parser reads a last label of digits as a number, so it would never match.
  return labels.every((label) => LABEL.test(label)) && !/^\d+$/.test(labels.at(-1) ?? '');
}

/** An external OpenID provider that authenticates callers of the administrative interface. */
const PROVIDER = {
  OIDC: issuerUrl
    .optional()
    .describe(
      'Issuer of an external OpenID provider, exactly as in its tokens. It then issues administrative access tokens, with `platform-service` in `aud`, and `/oauth2/token` issues none',
    ),
  OIDC_INTERNAL_ISSUER_URL: issuerUrl.optional().describe('Address of the provider for this service, if it differs from `OIDC`'),
  OIDC_CLIENT_ID: z.string().min(1).max(500).optional().describe('Client of this service at the provider; `GET /health` logs in with it'),
  OIDC_CLIENT_SECRET: z.string().min(1).max(4096).optional().describe('Its secret'),
  OIDC_CONSOLE_CLIENT_ID: z
    .string()
    .min(1)
    .max(500)
    .optional()
    .describe('Public client at the provider for the console (code with PKCE), with the redirect address `PUBLIC_URL/console`'),
  OIDC_SUB: claimName
    .default('tenant_id')
    .describe('Claim with the tenant id; for clients that manage tenants (role `tenants:manage`) with their client id'),
  OIDC_ACTOR_CLAIM: claimName
    .default('sub')
    .describe(
      'Claim that identifies the person, such as `sub` or `preferred_username`, for the audit log, the request log and rate limits',
    ),
  OIDC_ROLES: z
    .string()
    .regex(/^[^.\s]+(\.[^.\s]+){0,9}$/, 'names joined by dots')
    .optional()
    .describe('Path of the roles in tokens, such as `resource_access.vidimus.roles`. Default: `roles`, else `realm_access.roles`'),
  OIDC_ALGORITHM: z.enum(FOREIGN_ALGORITHMS).default('RS256').describe('Signature algorithm of the tokens'),
};

/** Metrics and traces. */
const MONITORING = {
  METRICS_ADDRESS: listenAddress
    .optional()
    .describe(
      'Separate address of `GET /metrics` for Prometheus, without a token: a port (this machine only) or `0.0.0.0:9464`; see docs/guides/monitoring.md',
    ),
  METRICS_TOKEN: z
    .string()
    .min(16, 'at least 16 characters')
    .max(256)
    .optional()
    .describe('Bearer token for `GET /metrics` on PORT, at least 16 characters; without it that path is not served'),
  METRICS_TENANTS: wholeNumber(0, 1_000).default(0).describe('Number of tenants that metrics name; all others are `others`'),
  OTEL_EXPORTER_OTLP_ENDPOINT: z
    .url({ protocol: /^https?$/ })
    .optional()
    .describe('Collector of traces (OTLP over HTTP); see docs/guides/monitoring.md. Default: no traces'),
  OTEL_TRACES_SAMPLER_ARG: ratio.default(1).describe('Share of traces that is kept, from 0 to 1'),
};

/**
 * All settings, read from the environment once at the start. The descriptions are the manual: they generate the table of
 * docs/reference/settings.md.
 */
export const SettingsSchema = z.object({
  NODE_ENV: oneOf(['production', 'development', 'test'])
    .optional()
    .describe('`production`, `development` or `test`. In production no secrets are generated, and PUBLIC_URL must be https'),
  HOST: z.string().min(1).default('127.0.0.1').describe('Address to listen on; `0.0.0.0` for all networks, as in the image'),
  PORT: wholeNumber(1, 65_535).default(3000).describe('Port to listen on'),
  WORKERS: workers
    .default(1)
    .describe('Processes that share the port; `auto` for one per core. More than one needs PostgreSQL; see docs/reference/workers.md'),
  DRAIN_SECONDS: wholeNumber(0, 300)
    .default(3)
    .describe(
      'Seconds after SIGTERM in which only `GET /health/ready` and `GET /health` answer 503; longer than the balancer needs to notice',
    ),
  PUBLIC_URL: publicUrl
    .optional()
    .describe(
      'Public address; every published address begins with it, in lower case, with A-labels, without a default port. Default: `http://localhost:<PORT>`',
    ),
  TRUST_PROXY: proxies
    .default(false)
    .describe('Proxies that may set the client address: their number, or their networks (`10.0.0.0/8, fd00::/8`)'),
  DATA_FOLDER: z
    .string()
    .min(1)
    .default('./data')
    .describe(
      'SQLite file, generated secrets, and with PostgreSQL the record of the database (`witness.json`). Must outlive the process: use a volume in a container',
    ),
  DATABASE_URL: databaseUrl
    .optional()
    .describe(
      '`postgres://user:password@host:port/database` or `sqlite:<file>`; `?sslmode=verify-full` requires TLS, `&sslrootcert=<file>` names a private CA. `postgres://user@%2Frun%2Fpostgresql/database` uses a local socket. Default: SQLite in DATA_FOLDER',
    ),
  ACCEPT_REWIND: z
    .string()
    .regex(/^\d{1,12}\.\d{1,15}$/, 'is not <term>.<counter>, as the start that refuses names it')
    .optional()
    .describe(
      'Position from the message of a refused start: accepts once a database that went back in time or that this machine has no record of, although data may be missing; see docs/guides/backup-and-restore.md',
    ),
  EXPECT_AUDIT_LOG: anchors
    .optional()
    .describe(
      'Audit log anchors from `npm run audit:verify`, separated by commas, without which the start is refused; see docs/guides/backup-and-restore.md',
    ),
  DATABASE_MIGRATION_URL: databaseUrl
    .optional()
    .describe('The same database for a user who may create tables, for `npx vidimus migrate` only. Default: DATABASE_URL'),
  MIGRATE: oneOf(['on', 'off'])
    .default('on')
    .describe('`on`: the start migrates the tables. `off`: the start fails if they are not current, and names `npx vidimus migrate`'),
  DATABASE_POOL: wholeNumber(1, 200).default(10).describe('PostgreSQL connections, divided among WORKERS, at least 4 each'),
  DATABASE_TIMEOUT: wholeNumber(1, 300)
    .default(15)
    .describe('Seconds for one statement and for waiting for a connection, except migrations; then 503'),
  MASTER_SECRET: masterSecret
    .optional()
    .describe(
      'Seals data at rest and signs access tokens; 32 characters or more, or `vault:<provider>:<key>` (KMS_CONFIG). Several, separated by commas: the first seals and signs, all open; `npx vidimus reseal` (in a clone `npm run reseal`) makes the others unnecessary. A new first one invalidates administrative access tokens; removing a former one invalidates refresh tokens of wallets and transaction codes of open offers',
    ),
  JWT_SECRET: masterSecret.optional().describe('Former name of MASTER_SECRET'),
  JWT_ISSUER: z.string().min(1).max(500).default('platform-service').describe('Issuer of administrative access tokens'),
  JWT_EXPIRES_IN: duration.default(86_400).describe('Lifetime of administrative access tokens, such as `24h`'),
  AUTH_CLIENT_ID: z
    .string()
    .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/, 'letters, digits and . _ -')
    .optional()
    .describe('Id of the built-in client that manages tenants'),
  AUTH_CLIENT_SECRET: z.string().min(16, 'at least 16 characters').max(256).optional().describe('Secret of the built-in client'),
  SESSION_TTL: wholeNumber(60, 315_360_000).default(86_400).describe('Seconds that a session lives, unless the tenant sets another value'),
  STATUS_CAPACITY: wholeNumber(100, 10_000_000).default(100_000).describe('Entries of a new status list'),
  STATUS_BITS: oneOf(['1', '2', '4', '8'])
    .transform((bits) => Number(bits) as 1 | 2 | 4 | 8)
    .default(1)
    .describe('Bits per status list entry'),
  STATUS_TTL: wholeNumber(60, 31_536_000).default(3600).describe('Seconds that a status list token is valid'),
  OUTBOUND_ALLOW: outboundAllow
    .default([])
    .describe(
      'Hosts and networks that outgoing calls may reach although they are not public https: `backend.example`, `*.example`, `10.0.0.0/8`, `127.0.0.1:8080`; for one tenant `acme=backend.example`. Cloud metadata services, such as `169.254.169.254`, need an entry of their own',
    ),
  RATE_LIMIT_TOKEN: wholeNumber(0, 1_000_000)
    .default(600)
    .describe(
      'Calls per minute of one public address to token, PAR and interactive authorization endpoints, and of one client to `/oauth2/token`, per process; 0: no limit',
    ),
  RATE_LIMIT_NONCE: wholeNumber(0, 1_000_000)
    .default(1_200)
    .describe('Calls per minute of one public address to nonce and challenge endpoints and for offers; 0: no limit'),
  RATE_LIMIT_LOGIN: wholeNumber(0, 1_000_000)
    .default(60)
    .describe('Logins at upstream providers per minute of one public address; 0: no limit'),
  RATE_LIMIT_OFFER: wholeNumber(0, 1_000_000)
    .default(60_000)
    .describe('Offers, presentation requests and dry runs per minute of one client; 0: no limit'),
  MAX_CONNECTIONS: wholeNumber(10, 1_000_000)
    .default(10_000)
    .describe('Open connections, divided among WORKERS; more are closed at once and logged'),
  KEEP_ALIVE_SECONDS: wholeNumber(5, 3_600)
    .default(65)
    .describe(
      'Seconds that an idle connection stays open. Must exceed that of the load balancer, or it gets 502; see docs/reference/operations.md',
    ),
  REQUESTS_AT_ONCE: wholeNumber(4, 1_000)
    .optional()
    .describe(
      'Concurrent requests of one process, except those that wait for a backend; tenants take turns. Default: DATABASE_POOL plus 2, with SQLite 6; see docs/reference/limits.md',
    ),
  BODY_MEMORY: wholeNumber(8, 65_536)
    .default(64)
    .describe(
      'MiB of request bodies at once: half for callers with an access token (one tenant at most half of that), an eighth for one public address; beyond that 503. Divided among WORKERS, at least 20 each',
    ),
  QUOTA_CREDENTIAL_CONFIGS: wholeNumber(1, 100_000).default(500).describe('Credential configurations of one tenant'),
  QUOTA_PRESENTATION_CONFIGS: wholeNumber(1, 100_000).default(500).describe('Presentation configurations of one tenant'),
  QUOTA_KEY_CHAINS: wholeNumber(1, 100_000).default(500).describe('Key chains of one tenant'),
  QUOTA_CLIENTS: wholeNumber(1, 100_000).default(500).describe('Clients of one tenant'),
  QUOTA_CONFIG_BYTES: wholeNumber(65_536, 1_073_741_824)
    .default(8_388_608)
    .describe('Stored bytes of all configurations of one tenant, a third more than written'),
  QUOTA_SESSION_BYTES: wholeNumber(1_048_576, 1_099_511_627_776)
    .default(268_435_456)
    .describe('Stored bytes of the open sessions of one tenant; see docs/reference/limits.md. Cannot be switched off'),
  CACHE_MEMORY: wholeNumber(16, 65_536)
    .default(160)
    .describe(
      'Approximate MiB of all caches of one process or worker; see docs/architecture/memory.md. Increase it for a thousand tenants, with the heap (`NODE_OPTIONS=--max-old-space-size`)',
    ),
  AUDIT_KEEP_DAYS: wholeNumber(30, 36_500)
    .optional()
    .describe('Days that audit log entries of tenants are kept, at least 30; see docs/reference/audit.md. Default: as long as the tenant'),
  CONFIG_FOLDER: z
    .string()
    .min(1)
    .optional()
    .describe('Folder with tenants as files, `<tenant>/…`, imported at each start; see docs/reference/configuration-files.md'),
  LOG_LEVEL: oneOf(['debug', 'info', 'warn', 'error', 'silent']).default('info').describe('Least severe level that is logged'),
  ...MONITORING,
  KMS_CONFIG: z
    .string()
    .optional()
    .describe(
      'Key stores, as JSON or path of a JSON file; see docs/reference/key-stores.md. Default: `kms.json` in DATA_FOLDER, else all keys in the database',
    ),
  AMQP_URL: amqpUrl
    .optional()
    .describe(
      'RabbitMQ, `amqps://user:password@host:port/vhost`, for events and for notifications between processes; see docs/reference/events.md',
    ),
  AMQP_CA: z.string().min(1).optional().describe('File with the private CA of the broker (PEM)'),
  ...PROVIDER,
});

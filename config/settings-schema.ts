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
      'Issuer of an external OpenID provider, letter by letter as its tokens name it. Administrative access tokens then come from there, with `platform-service` in `aud`, and `/oauth2/token` gives none',
    ),
  OIDC_INTERNAL_ISSUER_URL: issuerUrl.optional().describe('Address at which this service reaches the provider, if it differs from `OIDC`'),
  OIDC_CLIENT_ID: z.string().min(1).max(500).optional().describe('Client of this service at the provider; `GET /health` logs in with it'),
  OIDC_CLIENT_SECRET: z.string().min(1).max(4096).optional().describe('Its secret'),
  OIDC_CONSOLE_CLIENT_ID: z
    .string()
    .min(1)
    .max(500)
    .optional()
    .describe(
      'Public client at the provider with which people log in to the console (code with PKCE); its redirect address is `PUBLIC_URL/console`',
    ),
  OIDC_SUB: claimName
    .default('tenant_id')
    .describe('Claim with the tenant id; an account that manages tenants has its own client id there, and the role `tenants:manage`'),
  OIDC_ACTOR_CLAIM: claimName
    .default('sub')
    .describe(
      'Claim that names the person who calls, such as `sub` or `preferred_username`. The audit log, the log of requests and limits tell persons of one client apart by it',
    ),
  OIDC_ROLES: z
    .string()
    .regex(/^[^.\s]+(\.[^.\s]+){0,9}$/, 'names joined by dots')
    .optional()
    .describe('Where roles stand in tokens, such as `resource_access.vidimus.roles`. Default: `roles`, else `realm_access.roles`'),
  OIDC_ALGORITHM: z.enum(FOREIGN_ALGORITHMS).default('RS256').describe('Signature algorithm of the tokens'),
};

/** Metrics and traces. */
const MONITORING = {
  METRICS_ADDRESS: listenAddress
    .optional()
    .describe(
      'Where `GET /metrics` is answered for Prometheus, apart from the service and without a token: a port, for this machine alone, or `0.0.0.0:9464`; see docs/guides/monitoring.md',
    ),
  METRICS_TOKEN: z
    .string()
    .min(16, 'at least 16 characters')
    .max(256)
    .optional()
    .describe('Bearer token with which the service itself answers `GET /metrics`; without one it does not. At least 16 characters'),
  METRICS_TENANTS: wholeNumber(0, 1_000)
    .default(0)
    .describe('Tenants that metrics tell apart by name, at most; all others are `others` together. 0: no tenant is named'),
  OTEL_EXPORTER_OTLP_ENDPOINT: z
    .url({ protocol: /^https?$/ })
    .optional()
    .describe('Collector that traces are sent to (OTLP over HTTP); without it there are none. See docs/guides/monitoring.md'),
  OTEL_TRACES_SAMPLER_ARG: ratio.default(1).describe('Part of the traces that is kept, from 0 to 1'),
};

/**
 * All settings, read from the environment once at the start. The descriptions are the manual: they generate the table of
 * docs/reference/settings.md.
 */
export const SettingsSchema = z.object({
  NODE_ENV: oneOf(['production', 'development', 'test'])
    .optional()
    .describe('`production`, `development` or `test`. In production nothing is generated at the start, and PUBLIC_URL must be https'),
  HOST: z
    .string()
    .min(1)
    .default('127.0.0.1')
    .describe('Address to listen on: by itself this machine alone, `0.0.0.0` for all networks, as in the image'),
  PORT: wholeNumber(1, 65_535).default(3000).describe('Port to listen on'),
  WORKERS: workers
    .default(1)
    .describe(
      'Processes that share the port and the work; `auto` for one per core. More than one needs PostgreSQL; see docs/reference/workers.md',
    ),
  DRAIN_SECONDS: wholeNumber(0, 300)
    .default(3)
    .describe(
      'Seconds after SIGTERM in which `GET /health/ready` and `GET /health` answer 503 and everything is served as before, so that a balancer sends nothing more; longer than it takes to notice. SIGINT does not wait',
    ),
  PUBLIC_URL: publicUrl
    .optional()
    .describe(
      'Public address of the service; every published address begins with it, in lower case, with A-labels and without a default port. Default `http://localhost:<PORT>`',
    ),
  TRUST_PROXY: proxies
    .default(false)
    .describe('Proxies in front that may name the client address: how many there are, or their networks (`10.0.0.0/8, fd00::/8`)'),
  DATA_FOLDER: z
    .string()
    .min(1)
    .default('./data')
    .describe(
      'Where the SQLite file and generated secrets are kept, and with PostgreSQL how far this machine has seen the database (`witness.json`). It has to outlive the process: on a volume, if the service runs in a container',
    ),
  DATABASE_URL: databaseUrl
    .optional()
    .describe(
      '`postgres://user:password@host:port/database` or `sqlite:<file>`; `?sslmode=verify-full` demands TLS, `&sslrootcert=<file>` names an authority of your own. `postgres://user@%2Frun%2Fpostgresql/database` reaches a server on the same machine by its socket, at a tenth less of both. Default: SQLite in DATA_FOLDER',
    ),
  ACCEPT_REWIND: z
    .string()
    .regex(/^\d{1,12}\.\d{1,15}$/, 'is not <term>.<counter>, as the start that refuses names it')
    .optional()
    .describe(
      'To start once with a database that went back in time although something in it may be missing, or that this machine has no record of: the position that the start names when it refuses; see docs/guides/backup-and-restore.md',
    ),
  EXPECT_AUDIT_LOG: anchors
    .optional()
    .describe(
      'Ends of chains of the audit log that were kept elsewhere, as `npm run audit:verify` prints them, separated by commas: a start with a database that does not have them is refused; see docs/guides/backup-and-restore.md',
    ),
  DATABASE_MIGRATION_URL: databaseUrl
    .optional()
    .describe(
      'Address of the same PostgreSQL database for a user who may create tables; `npx vidimus migrate` alone uses it. Default: DATABASE_URL',
    ),
  MIGRATE: oneOf(['on', 'off'])
    .default('on')
    .describe(
      '`on`: a start creates the tables and brings them up to date. `off`: a start fails if they are not up to date, and names `npx vidimus migrate`',
    ),
  DATABASE_POOL: wholeNumber(1, 200)
    .default(10)
    .describe('PostgreSQL connections of one `npm start`; WORKERS have equal parts of it, at least 4 each'),
  DATABASE_TIMEOUT: wholeNumber(1, 300)
    .default(15)
    .describe(
      'Seconds that PostgreSQL has for one statement, and that a request waits for one of the connections; then the answer is 503, and a connection that is silent is replaced. More for a slow database, less for a fast failover. Migrations take the time they need',
    ),
  MASTER_SECRET: masterSecret
    .optional()
    .describe(
      'Seals data at rest and signs access tokens; 32 characters or more, or `vault:<provider>:<key>` for one that a provider of KMS_CONFIG has. Several, separated by commas: the first seals and signs, all open; `npx vidimus reseal` (in a clone `npm run reseal`) makes the others superfluous. Another first one ends administrative access tokens at once; dropping a former one ends refresh tokens of wallets and transaction codes of open offers that were made under it',
    ),
  JWT_SECRET: masterSecret.optional().describe('Older name of MASTER_SECRET'),
  JWT_ISSUER: z.string().min(1).max(500).default('platform-service').describe('Issuer of administrative access tokens'),
  JWT_EXPIRES_IN: duration.default(86_400).describe('Lifetime of administrative access tokens, such as `24h`'),
  AUTH_CLIENT_ID: z
    .string()
    .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/, 'letters, digits and . _ -')
    .optional()
    .describe('Id of the built-in client that manages tenants'),
  AUTH_CLIENT_SECRET: z.string().min(16, 'at least 16 characters').max(256).optional().describe('Secret of the built-in client'),
  SESSION_TTL: wholeNumber(60, 315_360_000).default(86_400).describe('Seconds that a session lives unless the tenant says otherwise'),
  STATUS_CAPACITY: wholeNumber(100, 10_000_000).default(100_000).describe('Entries of a new status list'),
  STATUS_BITS: oneOf(['1', '2', '4', '8'])
    .transform((bits) => Number(bits) as 1 | 2 | 4 | 8)
    .default(1)
    .describe('Bits per status list entry'),
  STATUS_TTL: wholeNumber(60, 31_536_000).default(3600).describe('Seconds that a status list token is valid'),
  OUTBOUND_ALLOW: outboundAllow
    .default([])
    .describe(
      'Hosts and networks that outgoing calls may reach although they are not public https: `backend.example`, `*.example`, `10.0.0.0/8`, `127.0.0.1:8080`; for one tenant `acme=backend.example`. Metadata services of clouds, such as `169.254.169.254`, only where an entry names just them',
    ),
  RATE_LIMIT_TOKEN: wholeNumber(0, 1_000_000)
    .default(600)
    .describe(
      'Calls per minute to token, PAR and interactive authorization endpoints: of one public address, and of one client at `/oauth2/token`; 0 for any number. Each process and each of WORKERS counts for itself',
    ),
  RATE_LIMIT_NONCE: wholeNumber(0, 1_000_000)
    .default(1_200)
    .describe('Calls per minute of one public address to nonce and challenge endpoints and for offers; 0 for any number'),
  RATE_LIMIT_LOGIN: wholeNumber(0, 1_000_000)
    .default(60)
    .describe(
      'Logins per minute that browsers of one public address may begin at, or bring back from, an upstream provider, which is called for each; 0 for any number',
    ),
  RATE_LIMIT_OFFER: wholeNumber(0, 1_000_000)
    .default(60_000)
    .describe('Offers, presentation requests and tries of questions per minute that one client may make; 0 for any number'),
  MAX_CONNECTIONS: wholeNumber(10, 1_000_000)
    .default(10_000)
    .describe('Connections that are open at once; further ones are closed at once, and the log says so. WORKERS have equal parts of it'),
  KEEP_ALIVE_SECONDS: wholeNumber(5, 3_600)
    .default(65)
    .describe(
      'Seconds that an idle connection of a client is kept open. Set it above the time for which the load balancer keeps its connections, or it sends requests on connections that just closed (502); see docs/reference/operations.md',
    ),
  REQUESTS_AT_ONCE: wholeNumber(4, 1_000)
    .optional()
    .describe(
      'Requests that one process works on at the same time, at most, not counted those that wait for a backend; others wait, and tenants take turns. Default: two more than DATABASE_POOL, with SQLite 6; see docs/reference/limits.md',
    ),
  BODY_MEMORY: wholeNumber(8, 65_536)
    .default(64)
    .describe(
      'MiB of request bodies that are held at once; half of it is for callers with an access token, of which one tenant may hold half, and one public address may hold an eighth. Beyond that the answer is 503. WORKERS have equal parts of it, at least 20 each, so that one address can send the largest response of a wallet (2.5 MiB)',
    ),
  QUOTA_CREDENTIAL_CONFIGS: wholeNumber(1, 100_000).default(500).describe('Credential configurations that one tenant may have'),
  QUOTA_PRESENTATION_CONFIGS: wholeNumber(1, 100_000).default(500).describe('Presentation configurations that one tenant may have'),
  QUOTA_KEY_CHAINS: wholeNumber(1, 100_000).default(500).describe('Key chains that one tenant may have'),
  QUOTA_CLIENTS: wholeNumber(1, 100_000).default(500).describe('Clients that one tenant may have'),
  QUOTA_CONFIG_BYTES: wholeNumber(65_536, 1_073_741_824)
    .default(8_388_608)
    .describe('Bytes that all configurations of one tenant may have together, as they are stored: sealed, a third more than written'),
  QUOTA_SESSION_BYTES: wholeNumber(1_048_576, 1_099_511_627_776)
    .default(268_435_456)
    .describe(
      'Bytes that the open sessions of one tenant may have together, as they are stored, with what wallets began and has not ended; see docs/reference/limits.md. There is no value for no quota',
    ),
  CACHE_MEMORY: wholeNumber(16, 65_536)
    .default(160)
    .describe(
      'MiB that all caches of one process, or of each of WORKERS, have together, roughly; see docs/architecture/memory.md. More for a thousand tenants, with a larger heap (`NODE_OPTIONS=--max-old-space-size`)',
    ),
  AUDIT_KEEP_DAYS: wholeNumber(30, 36_500)
    .optional()
    .describe(
      'Days that entries of the audit logs of tenants are kept; the log of the service stays, and says from where what is left can be verified; see docs/reference/audit.md. At least 30. Default: as long as their tenant',
    ),
  CONFIG_FOLDER: z
    .string()
    .min(1)
    .optional()
    .describe('Folder with tenants as files, `<tenant>/…`, which is imported at each start; see docs/reference/configuration-files.md'),
  LOG_LEVEL: oneOf(['debug', 'info', 'warn', 'error', 'silent']).default('info').describe('Least severe log line that is written'),
  ...MONITORING,
  KMS_CONFIG: z
    .string()
    .optional()
    .describe(
      'Where keys live, as JSON or as the path of a file with it: providers of type `local`, `vault` or `pkcs11`, the default one, and those of tenants; see docs/reference/key-stores.md. Default: `kms.json` in DATA_FOLDER, else all keys in the database',
    ),
  AMQP_URL: amqpUrl
    .optional()
    .describe(
      '`amqps://user:password@host:port/vhost` of RabbitMQ, which wakes up other processes and hands on events; see docs/reference/events.md. Without it all of that stays in the process',
    ),
  AMQP_CA: z
    .string()
    .min(1)
    .optional()
    .describe('Path of a file with the authority that certified the broker, in PEM, when it is not one that everybody trusts'),
  ...PROVIDER,
});

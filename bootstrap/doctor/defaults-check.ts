import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Settings } from '../../config/settings.ts';
import { type Finding, ok, warning } from './finding.ts';

const CHECK = 'defaults';
const LIMITS = ['RATE_LIMIT_TOKEN', 'RATE_LIMIT_NONCE', 'RATE_LIMIT_LOGIN', 'RATE_LIMIT_OFFER'] as const;
/** An entry that allows all addresses also allows the internal network. */
const ALL_ADDRESSES = /^(\*|\*\.[a-z]+|0\.0\.0\.0\/[0-7]|::\/\d{1,2})$/;

/** Finds defaults that are convenient in development and unsafe in production. None of them prevents the start. */
export function checkDefaults(settings: Settings): readonly Finding[] {
  const findings = [...addressFindings(settings), ...secretFindings(settings), ...connectionFindings(settings), ...limitFindings(settings)];
  return findings.length > 0 ? findings : [ok(CHECK, 'no setting is unsafe in production')];
}

function addressFindings({ PUBLIC_URL, NODE_ENV, TRUST_PROXY }: Settings): Finding[] {
  const { protocol, hostname } = new URL(PUBLIC_URL);
  const findings: Finding[] = [];
  if (isLocalHost(hostname)) {
    return NODE_ENV === 'production'
      ? [
          warning(
            CHECK,
            `PUBLIC_URL is ${PUBLIC_URL}, which no wallet can reach`,
            'set PUBLIC_URL to the https address under which wallets reach the service',
          ),
        ]
      : [];
  }
  if (protocol === 'http:') findings.push(warning(CHECK, 'PUBLIC_URL is http', 'wallets require https: add a proxy that terminates TLS'));
  if (NODE_ENV !== 'production')
    findings.push(
      warning(
        CHECK,
        'NODE_ENV is not production',
        'set NODE_ENV=production: a missing secret then stops the start instead of being generated',
      ),
    );
  if (protocol === 'https:' && TRUST_PROXY === false)
    findings.push(
      warning(
        CHECK,
        'TRUST_PROXY is false, but the service is behind a proxy, so all callers have the address of the proxy',
        'set TRUST_PROXY to the number of proxies or to their networks; calls per minute are counted by address',
      ),
    );
  return findings;
}

function secretFindings({ NODE_ENV, DATA_FOLDER, DATABASE_URL }: Settings): Finding[] {
  const file = join(DATA_FOLDER, 'secrets.env');
  if (!existsSync(file)) return [];
  if (NODE_ENV === 'production') {
    const advice = 'delete the file once its secrets are stored where your other secrets are: it has no effect any more';
    return [warning(CHECK, `${file} contains secrets that an earlier start generated`, advice)];
  }
  if (!DATABASE_URL.startsWith('postgres')) return [];
  const advice = 'store them where your other secrets are, and set them in the environment of the service';
  return [warning(CHECK, `the secrets of a PostgreSQL database were generated into ${file}`, advice)];
}

/** Finds connections that others could read. */
function connectionFindings({ DATABASE_URL, AMQP_URL, OUTBOUND_ALLOW }: Settings): Finding[] {
  const findings: Finding[] = [];
  if (DATABASE_URL.startsWith('postgres')) {
    const { hostname, searchParams } = new URL(DATABASE_URL);
    const isVerified = searchParams.get('sslmode')?.startsWith('verify') === true;
    if (!isVerified && !isLocalHost(decodeURIComponent(hostname)))
      findings.push(
        warning(CHECK, `the connection to the database ${hostname} is not encrypted`, 'add ?sslmode=verify-full to DATABASE_URL'),
      );
  }
  if (AMQP_URL !== undefined) {
    const { protocol, hostname } = new URL(AMQP_URL);
    if (protocol === 'amqp:' && !isLocalHost(hostname))
      findings.push(warning(CHECK, `the connection to the broker ${hostname} is not encrypted`, 'use amqps:// in AMQP_URL'));
  }
  for (const entry of OUTBOUND_ALLOW)
    if (ALL_ADDRESSES.test(entry.split('=').at(-1) ?? ''))
      findings.push(
        warning(
          CHECK,
          `OUTBOUND_ALLOW has ${entry}`,
          'replace it in OUTBOUND_ALLOW by the intended hosts, since tenants choose the called addresses',
        ),
      );
  return findings;
}

function limitFindings(settings: Settings): Finding[] {
  const unlimited = LIMITS.filter((name) => settings[name] === 0);
  const findings = unlimited.map((name) =>
    warning(CHECK, `${name} is 0, so calls are not limited`, `remove ${name} from the environment for its default, or set a limit above 0`),
  );
  if (settings.LOG_LEVEL === 'silent')
    findings.push(warning(CHECK, 'LOG_LEVEL is silent', 'set LOG_LEVEL to info or warn: the reason of a failure is recorded nowhere else'));
  return findings;
}

/** @returns true for a socket or an address of this machine. */
export function isLocalHost(host: string): boolean {
  return host.startsWith('/') || /^(localhost|127\.\d+\.\d+\.\d+|\[?::1\]?)$/.test(host);
}

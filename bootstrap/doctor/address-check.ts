import { randomBytes } from 'node:crypto';
import { type Answer, ask, certificateOf, jsonOf } from './ask.ts';
import { daysUntil, type Finding, fault, ok, warning } from './finding.ts';

const CHECK = 'address';
const RENEWAL_DAYS = 21;
const LAST_DAYS = 7;
const TOLERATED_SECONDS = 60;
/** More than proxies let through by themselves, and less than the service takes. */
const LARGE_BODY = 2 * 1_048_576;
const SECURITY_HEADERS = ['x-content-type-options', 'referrer-policy'] as const;

export type Published = {
  readonly publicUrl: string;
  readonly version: string;
  readonly commit: string | null;
  /** One that is there, whose documents are looked at. */
  readonly tenantId: string | undefined;
};

/** The service as others see it: by its public address, through whatever is in front of it. */
export async function checkAddress(published: Published, now = () => new Date()): Promise<readonly Finding[]> {
  const { publicUrl } = published;
  let root: Answer;
  try {
    root = await ask(`${publicUrl}/`);
  } catch (error) {
    const reason = error instanceof Error ? error.message || String((error as { code?: unknown }).code) : String(error);
    const advice = 'start the service, and see that its name leads to the proxy in front of it, from here as well';
    return [fault(CHECK, `${publicUrl} cannot be reached: ${reason}`, advice)];
  }
  const findings = [...(await ofCertificate(publicUrl, now())), ...ofClock(root, now())];
  const identity = ofIdentity(root, published);
  findings.push(...identity);
  if (identity.some(({ outcome }) => outcome === 'fault')) return findings;
  findings.push(await ofHealth(publicUrl), ...(await ofWellKnown(published)), ...(await ofProxy(publicUrl, root)));
  return findings;
}

async function ofCertificate(publicUrl: string, now: Date): Promise<Finding[]> {
  const address = new URL(publicUrl);
  if (address.protocol !== 'https:') return [];
  const { until, refusal } = await certificateOf(address);
  const findings: Finding[] = [];
  if (refusal !== undefined)
    findings.push(
      fault(
        'certificate',
        `wallets do not trust that of ${address.hostname}: ${refusal}`,
        'let the proxy send the certificate with all intermediate certificates, from a public authority',
      ),
    );
  const days = daysUntil(until, now);
  const message = `that of ${address.hostname} ends in ${days} days`;
  if (days < LAST_DAYS) findings.push(fault('certificate', message, 'renew it now where TLS ends (the proxy or ingress)'));
  else if (days < RENEWAL_DAYS)
    findings.push(warning('certificate', message, 'check the job that renews it, where TLS ends (the proxy or ingress)'));
  else if (refusal === undefined) findings.push(ok('certificate', message));
  return findings;
}

function ofClock({ headers }: Answer, now: Date): Finding[] {
  const there = new Date(String(headers['date'] ?? ''));
  if (Number.isNaN(there.getTime())) return [];
  const apart = Math.round((now.getTime() - there.getTime()) / 1000);
  return Math.abs(apart) <= TOLERATED_SECONDS
    ? []
    : [
        warning(
          'clock',
          `the answer from outside is ${-apart} seconds ahead`,
          'synchronize both machines by NTP (timedatectl set-ntp true)',
        ),
      ];
}

function ofIdentity(root: Answer, { publicUrl, version, commit }: Published): Finding[] {
  const said = jsonOf(root);
  if (root.status !== 200 || said?.['name'] !== 'vidimus')
    return [
      fault(
        CHECK,
        `what answers at ${publicUrl}/ (${root.status}) is not this service`,
        'let the proxy hand on that path as it is, to the port of the service',
      ),
    ];
  if (said['issuerUrlTemplate'] !== `${publicUrl}/{tenant}`)
    return [
      fault(
        CHECK,
        `the service behind ${publicUrl} publishes ${String(said['issuerUrlTemplate']).slice(0, 200)}`,
        'give all processes the same PUBLIC_URL, and restart them',
      ),
    ];
  const isSameCommit = commit === null || said['commit'] === null || said['commit'] === commit;
  if (said['version'] === version && !isSameCommit)
    return [
      warning(
        CHECK,
        `${publicUrl} runs commit ${String(said['commit']).slice(0, 40)} of release ${version}, and this is commit ${commit}`,
        'restart all processes with one build',
      ),
    ];
  return said['version'] === version
    ? [ok(CHECK, `${publicUrl} reaches the service, release ${version}`)]
    : [
        warning(
          CHECK,
          `${publicUrl} reaches release ${String(said['version']).slice(0, 40)}, and this is ${version}`,
          'restart all processes with one release',
        ),
      ];
}

async function ofHealth(publicUrl: string): Promise<Finding> {
  const answer = await ask(`${publicUrl}/health`);
  const said = jsonOf(answer);
  const down = Object.keys((said?.['error'] ?? {}) as object);
  if (said?.['status'] === 'ok') return ok('health', 'everything works');
  const message = down.length > 0 ? `${down.join(', ')}: down` : `GET /health answers with ${answer.status}`;
  const advice = 'read the reason in the log of the service (level error), and repair what it names';
  if (down.includes('history')) {
    const fence = 'nothing is issued: the database went back in time; see docs/backup-and-restore.md';
    return fault('health', message, fence);
  }
  return said?.['status'] === 'degraded' ? warning('health', message, advice) : fault('health', message, advice);
}

/** RFC 8414 section 3.1: the documents of an issuer with a path stand at the root of the host. */
async function ofWellKnown({ publicUrl, tenantId }: Published): Promise<Finding[]> {
  const { origin, pathname } = new URL(publicUrl);
  const path = pathname.replace(/\/$/, '');
  const advice = `let the proxy hand on ${origin}/.well-known/ as it is: these documents stand at the root of the host`;
  const findings: Finding[] = [];
  for (const [name, member] of [
    ['openid-credential-issuer', 'credential_issuer'],
    ['oauth-authorization-server', 'issuer'],
  ] as const) {
    const tenant = tenantId ?? `no-${randomBytes(6).toString('hex')}`;
    const address = `${origin}/.well-known/${name}${path}/${tenant}`;
    const answer = await ask(address);
    const isOurs =
      tenantId === undefined
        ? answer.status === 404 && String(answer.headers['content-type']).includes('problem+json')
        : jsonOf(answer)?.[member] === `${publicUrl}/${tenantId}`;
    if (!isOurs) findings.push(fault('well-known', `${address} does not reach the service (${answer.status})`, advice));
  }
  return findings.length > 0 ? findings : [ok('well-known', 'the documents of issuers are found')];
}

/** What a proxy takes away, or refuses by itself. */
async function ofProxy(publicUrl: string, root: Answer): Promise<Finding[]> {
  const findings: Finding[] = [];
  const bare = await ask(`${publicUrl}/tenant`);
  const withToken = await ask(`${publicUrl}/tenant`, { headers: { Authorization: 'Bearer not-a-token' } });
  // Both are refused, and the words say whether there was a token.
  const said = (answer: Answer) => `${answer.status} ${String(jsonOf(answer)?.['detail'])}`;
  if (said(bare) === said(withToken))
    findings.push(fault('proxy', 'the header Authorization does not arrive', 'let the proxy hand on all headers of requests'));
  const lost = SECURITY_HEADERS.filter((name) => root.headers[name] === undefined);
  if (lost.length > 0) findings.push(warning('proxy', `answers lose ${lost.join(', ')}`, 'let the proxy hand on all headers of answers'));
  const headers = { 'Content-Type': 'application/json', 'Content-Length': String(LARGE_BODY) };
  const large = await ask(`${publicUrl}/tenant`, { method: 'POST', headers, body: Buffer.alloc(LARGE_BODY, 32) }).catch(() => undefined);
  if (large?.status === 413 && !String(large.headers['content-type']).includes('json'))
    findings.push(
      warning(
        'proxy',
        `something in front of the service refuses bodies of ${LARGE_BODY / 1_048_576} MiB`,
        'raise its limit (nginx: client_max_body_size 20m); the service has smaller ones of its own',
      ),
    );
  return findings.length > 0 ? findings : [ok('proxy', 'headers and bodies arrive as they were sent')];
}

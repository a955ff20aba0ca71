import { randomBytes } from 'node:crypto';
import { daysUntil, type Finding, fault, ok, warning } from './finding.ts';
import { type Answer, certificateOf, httpRequest, jsonOf } from './http-request.ts';

const CHECK = 'address';
const RENEWAL_DAYS = 21;
const LAST_DAYS = 7;
const TOLERATED_SECONDS = 60;
/** Proxies refuse this size by default, and the service accepts it. */
const LARGE_BODY = 2 * 1_048_576;
const SECURITY_HEADERS = ['x-content-type-options', 'referrer-policy'] as const;

export type PublishedService = {
  readonly publicUrl: string;
  readonly version: string;
  readonly commit: string | null;
  /** An existing tenant whose documents are checked. */
  readonly tenantId: string | undefined;
};

/** Checks the service at its public address, through the proxies in front of it. */
export async function checkAddress(published: PublishedService, now = () => new Date()): Promise<readonly Finding[]> {
  const { publicUrl } = published;
  let root: Answer;
  try {
    root = await httpRequest(`${publicUrl}/`);
  } catch (error) {
    const reason = error instanceof Error ? error.message || String((error as { code?: unknown }).code) : String(error);
    const advice = 'start the service, and check that its name resolves to its proxy, also from this machine';
    return [fault(CHECK, `${publicUrl} cannot be reached: ${reason}`, advice)];
  }
  const findings = [...(await certificateFindings(publicUrl, now())), ...clockFindings(root, now())];
  const identityResults = identityFindings(root, published);
  findings.push(...identityResults);
  if (identityResults.some(({ outcome }) => outcome === 'fault')) return findings;
  findings.push(await healthFinding(publicUrl), ...(await wellKnownFindings(published)), ...(await proxyFindings(publicUrl, root)));
  return findings;
}

async function certificateFindings(publicUrl: string, now: Date): Promise<Finding[]> {
  const address = new URL(publicUrl);
  if (address.protocol !== 'https:') return [];
  const { validUntil, rejection } = await certificateOf(address);
  const findings: Finding[] = [];
  if (rejection !== undefined)
    findings.push(
      fault(
        'certificate',
        `wallets do not trust that of ${address.hostname}: ${rejection}`,
        'configure the proxy to send the certificate with all intermediate certificates, from a public authority',
      ),
    );
  const days = daysUntil(validUntil, now);
  const message = `that of ${address.hostname} ends in ${days} days`;
  if (days < LAST_DAYS) findings.push(fault('certificate', message, 'renew it now where TLS is terminated (the proxy or ingress)'));
  else if (days < RENEWAL_DAYS)
    findings.push(warning('certificate', message, 'check the job that renews it where TLS is terminated (the proxy or ingress)'));
  else if (rejection === undefined) findings.push(ok('certificate', message));
  return findings;
}

function clockFindings({ headers }: Answer, now: Date): Finding[] {
  const serverTime = new Date(String(headers['date'] ?? ''));
  if (Number.isNaN(serverTime.getTime())) return [];
  const differenceSeconds = Math.round((now.getTime() - serverTime.getTime()) / 1000);
  return Math.abs(differenceSeconds) <= TOLERATED_SECONDS
    ? []
    : [
        warning(
          'clock',
          `the answer from outside is ${-differenceSeconds} seconds ahead`,
          'synchronize both machines by NTP (timedatectl set-ntp true)',
        ),
      ];
}

function identityFindings(root: Answer, { publicUrl, version, commit }: PublishedService): Finding[] {
  const description = jsonOf(root);
  if (root.status !== 200 || description?.['name'] !== 'vidimus')
    return [
      fault(
        CHECK,
        `the server at ${publicUrl}/ (${root.status}) is not this service`,
        'configure the proxy to forward that path unchanged to the port of the service',
      ),
    ];
  if (description['issuerUrlTemplate'] !== `${publicUrl}/{tenant}`)
    return [
      fault(
        CHECK,
        `the service behind ${publicUrl} publishes ${String(description['issuerUrlTemplate']).slice(0, 200)}`,
        'give all processes the same PUBLIC_URL, and restart them',
      ),
    ];
  const isSameCommit = commit === null || description['commit'] === null || description['commit'] === commit;
  if (description['version'] === version && !isSameCommit)
    return [
      warning(
        CHECK,
        `${publicUrl} runs commit ${String(description['commit']).slice(0, 40)} of release ${version}, but this is commit ${commit}`,
        'restart all processes with one build',
      ),
    ];
  return description['version'] === version
    ? [ok(CHECK, `${publicUrl} reaches the service, release ${version}`)]
    : [
        warning(
          CHECK,
          `${publicUrl} reaches release ${String(description['version']).slice(0, 40)}, but this is ${version}`,
          'restart all processes with one release',
        ),
      ];
}

async function healthFinding(publicUrl: string): Promise<Finding> {
  const answer = await httpRequest(`${publicUrl}/health`);
  const health = jsonOf(answer);
  const failingParts = Object.keys((health?.['error'] ?? {}) as object);
  if (health?.['status'] === 'ok') return ok('health', 'everything works');
  const message = failingParts.length > 0 ? `${failingParts.join(', ')}: down` : `GET /health answers with ${answer.status}`;
  const advice = 'read the reason in the log of the service (level error), and fix it';
  if (failingParts.includes('history')) {
    const fence = 'nothing is issued: the database went back in time; see docs/guides/backup-and-restore.md';
    return fault('health', message, fence);
  }
  return health?.['status'] === 'degraded' ? warning('health', message, advice) : fault('health', message, advice);
}

/** RFC 8414 section 3.1: the documents of an issuer with a path are at the root of the host. */
async function wellKnownFindings({ publicUrl, tenantId }: PublishedService): Promise<Finding[]> {
  const { origin, pathname } = new URL(publicUrl);
  const path = pathname.replace(/\/$/, '');
  const advice = `configure the proxy to forward ${origin}/.well-known/ unchanged: these documents are at the root of the host`;
  const findings: Finding[] = [];
  for (const [name, member] of [
    ['openid-credential-issuer', 'credential_issuer'],
    ['oauth-authorization-server', 'issuer'],
  ] as const) {
    const tenant = tenantId ?? `no-${randomBytes(6).toString('hex')}`;
    const address = `${origin}/.well-known/${name}${path}/${tenant}`;
    const answer = await httpRequest(address);
    const isServed =
      tenantId === undefined
        ? answer.status === 404 && String(answer.headers['content-type']).includes('problem+json')
        : jsonOf(answer)?.[member] === `${publicUrl}/${tenantId}`;
    if (!isServed) findings.push(fault('well-known', `${address} does not reach the service (${answer.status})`, advice));
  }
  return findings.length > 0 ? findings : [ok('well-known', 'the issuer documents are available')];
}

/** Finds headers that a proxy removes, and bodies that it refuses. */
async function proxyFindings(publicUrl: string, root: Answer): Promise<Finding[]> {
  const findings: Finding[] = [];
  const withoutToken = await httpRequest(`${publicUrl}/tenant`);
  const withToken = await httpRequest(`${publicUrl}/tenant`, { headers: { Authorization: 'Bearer not-a-token' } });
  // Both requests are refused, and the error detail tells whether the token arrived.
  const outcomeOf = (answer: Answer) => `${answer.status} ${String(jsonOf(answer)?.['detail'])}`;
  if (outcomeOf(withoutToken) === outcomeOf(withToken))
    findings.push(fault('proxy', 'the header Authorization does not arrive', 'configure the proxy to forward all request headers'));
  const lostHeaders = SECURITY_HEADERS.filter((name) => root.headers[name] === undefined);
  if (lostHeaders.length > 0)
    findings.push(warning('proxy', `answers lose ${lostHeaders.join(', ')}`, 'configure the proxy to forward all response headers'));
  const headers = { 'Content-Type': 'application/json', 'Content-Length': String(LARGE_BODY) };
  const largeBody = await httpRequest(`${publicUrl}/tenant`, { method: 'POST', headers, body: Buffer.alloc(LARGE_BODY, 32) }).catch(
    () => undefined,
  );
  if (largeBody?.status === 413 && !String(largeBody.headers['content-type']).includes('json'))
    findings.push(
      warning(
        'proxy',
        `a proxy of the service rejects bodies of ${LARGE_BODY / 1_048_576} MiB`,
        'raise its limit (nginx: client_max_body_size 20m); the service has its own smaller limits',
      ),
    );
  return findings.length > 0 ? findings : [ok('proxy', 'headers and bodies arrive unchanged')];
}

import { MasterCipher } from '../../adapters/crypto/cipher.ts';
import { OrmStore } from '../../adapters/persistence/orm-store.ts';
import type { Store } from '../../application/ports/store.ts';
import type { Settings } from '../../config/settings.ts';
import type { KeyChain } from '../../domain/keys/key-chain.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { daysUntil, type Finding, fault, ok, warning } from './finding.ts';

const ENDING_DAYS = 30;
/** Each line names one item that ends; the remaining items are counted. */
const MAX_LINES = 20;
const MAX_TENANTS = 5_000;
const HOUR_MS = 3_600_000;
const LISTS = 100;

export type StoredState = { readonly findings: readonly Finding[]; readonly tenantId: string | undefined };

/** Checks that the secrets open the database, and finds stored items that end soon. */
export async function checkStored(settings: Settings, now = new Date()): Promise<StoredState> {
  const cipher = new MasterCipher({ masterSecrets: settings.MASTER_SECRET });
  const { DATABASE_URL: url, DATABASE_TIMEOUT: timeoutSeconds } = settings;
  const store = await OrmStore.open({ url, poolSize: 2, timeoutSeconds, migrates: false }, cipher);
  try {
    const tenants = await store.forService(({ tenants }) => tenants.list());
    const checkedTenants = tenants.slice(0, MAX_TENANTS);
    const findings = [
      ...(await secretFindings(store, cipher.keyIds)),
      ...(await clientFindings(store)),
      ...(await keyFindings(
        store,
        checkedTenants.map(({ id }) => id as TenantId),
        now,
      )),
      ...(await listFindings(store, now)),
    ];
    if (tenants.length > checkedTenants.length)
      findings.push(warning('keys', `only ${MAX_TENANTS} of ${tenants.length} tenants were checked`, 'monitor the certificate metrics'));
    return { findings, tenantId: tenants.find(({ status }) => status === 'active')?.id };
  } finally {
    await store.close();
  }
}

async function secretFindings({ maintenance }: Store, keyIds: readonly string[]): Promise<Finding[]> {
  const check = 'secrets';
  const formerKeyIds = keyIds.slice(1);
  if (formerKeyIds.length === 0) return [ok(check, 'the master secret opens the stored data')];
  const resealed = await maintenance.resealedKeys();
  const areAllResealed = formerKeyIds.every((id) => resealed.includes(id));
  return areAllResealed
    ? [warning(check, 'no data is sealed under the former secrets of MASTER_SECRET', 'remove them at the next restart')]
    : [warning(check, `MASTER_SECRET has ${formerKeyIds.length} former secrets that are still required`, 'run "npx vidimus reseal"')];
}

/** A row that the service did not write gives no access, but it may be an attack. */
async function clientFindings(store: OrmStore): Promise<Finding[]> {
  const forged = await store.forgedClients();
  if (forged.length === 0) return [ok('clients', 'the service itself wrote every client')];
  const findings = forged
    .slice(0, MAX_LINES)
    .map((id) =>
      fault(
        'clients',
        `the client "${id}" was changed in the database without the service, so it cannot log in`,
        'find out who writes to the database, delete the row and create the client again (docs/reference/security.md)',
      ),
    );
  const furtherCount = forged.length - findings.length;
  if (furtherCount > 0)
    findings.push(
      fault(
        'clients',
        `${furtherCount} further clients were changed`,
        'do this for the clients above, then run the doctor again, which lists the next ones',
      ),
    );
  return findings;
}

async function keyFindings(store: Store, tenantIds: readonly TenantId[], now: Date): Promise<Finding[]> {
  const findings: Finding[] = [];
  let furtherCount = 0;
  for (const tenantId of tenantIds) {
    const chains = await store.forTenant(tenantId, ({ keyChains }) => keyChains.list());
    for (const finding of chains.flatMap((chain) => endingFindings(chain, now))) {
      if (findings.length < MAX_LINES) findings.push(finding);
      else furtherCount++;
    }
  }
  if (furtherCount > 0)
    findings.push(
      warning(
        'keys',
        `${furtherCount} further certificates expire soon`,
        'renew the ones above, then run the doctor again, which lists the next ones',
      ),
    );
  return findings.length > 0 ? findings : [ok('keys', `no certificate expires within ${ENDING_DAYS} days`)];
}

/** An item that renews itself is reported only after the renewal has failed. */
export function endingFindings(chain: KeyChain, now: Date): Finding[] {
  const { id, tenantId, active, root, usages, rotationEnabled } = chain;
  if (usages.length === 0) return [];
  const ends = [
    { subject: 'certificate', end: active.notAfter, renews: rotationEnabled && root !== undefined },
    ...(root === undefined ? [] : [{ subject: 'authority', end: root.notAfter, renews: false }]),
  ];
  return ends.flatMap(({ subject, end, renews }) => {
    const days = daysUntil(end, now);
    const name = `the ${subject} of the key chain "${id}" of ${tenantId}`;
    const advice =
      root === undefined ? 'upload a new certificate (docs/reference/keys.md)' : `POST /key-chain/${id}/rotate (docs/reference/keys.md)`;
    if (end <= now) return [fault('keys', `${name} has expired`, advice)];
    return days < ENDING_DAYS && !renews ? [warning('keys', `${name} expires in ${days} days`, advice)] : [];
  });
}

/** The service signs its published lists again hours before they end. */
async function listFindings({ maintenance }: Store, now: Date): Promise<Finding[]> {
  const endedLists = await maintenance.endingTrustLists(now, LISTS);
  const advice = 'start the service, which signs the lists again while it runs; if it runs, its log has the reason';
  const findings = endedLists
    .slice(0, MAX_LINES)
    .map(({ tenantId, id }) => fault('lists', `the trust list "${id}" of ${tenantId} has expired`, advice));
  const heldCount = await maintenance.countHeldTrustLists(new Date(now.getTime() - 48 * HOUR_MS));
  if (heldCount > 0)
    findings.push(warning('lists', `${heldCount} followed trust lists require an operator`, 'GET /trust/lists lists them'));
  const failingCount = await maintenance.failingLists(new Date(now.getTime() - HOUR_MS));
  if (failingCount > 0)
    findings.push(warning('lists', `${failingCount} followed status lists are unavailable`, 'GET /cache/stats lists them'));
  return findings.length > 0 ? findings : [ok('lists', 'no trust list has expired')];
}

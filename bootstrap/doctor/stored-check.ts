import { MasterCipher } from '../../adapters/crypto/cipher.ts';
import { OrmStore } from '../../adapters/persistence/orm-store.ts';
import type { Store } from '../../application/ports/store.ts';
import type { Settings } from '../../config/settings.ts';
import type { KeyChain } from '../../domain/keys/key-chain.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { daysUntil, type Finding, fault, ok, warning } from './finding.ts';

const ENDING_DAYS = 30;
/** Each line names one thing that ends; further ones are counted. */
const MAX_LINES = 20;
const MAX_TENANTS = 5_000;
const HOUR_MS = 3_600_000;
const LISTS = 100;

export type Stored = {
  readonly findings: readonly Finding[];
  /** One that is there. */
  readonly tenantId: string | undefined;
};

/** What the database holds: that the secrets open it, and what in it ends soon. */
export async function checkStored(settings: Settings, now = new Date()): Promise<Stored> {
  const cipher = new MasterCipher({ masterSecrets: settings.MASTER_SECRET });
  const { DATABASE_URL: url, DATABASE_TIMEOUT: timeoutSeconds } = settings;
  const store = await OrmStore.open({ url, poolSize: 2, timeoutSeconds, migrates: false }, cipher);
  try {
    const tenants = await store.forService(({ tenants }) => tenants.list());
    const looked = tenants.slice(0, MAX_TENANTS);
    const findings = [
      ...(await ofSecrets(store, cipher.keyIds)),
      ...(await ofClients(store)),
      ...(await ofKeys(
        store,
        looked.map(({ id }) => id as TenantId),
        now,
      )),
      ...(await ofLists(store, now)),
    ];
    if (tenants.length > looked.length)
      findings.push(
        warning('keys', `only ${MAX_TENANTS} of ${tenants.length} tenants were looked at`, 'watch the metrics of certificates'),
      );
    return { findings, tenantId: tenants.find(({ status }) => status === 'active')?.id };
  } finally {
    await store.close();
  }
}

async function ofSecrets({ maintenance }: Store, keyIds: readonly string[]): Promise<Finding[]> {
  const check = 'secrets';
  const former = keyIds.slice(1);
  if (former.length === 0) return [ok(check, 'the master secret opens what is stored')];
  const resealed = await maintenance.resealedKeys();
  const isOver = former.every((id) => resealed.includes(id));
  return isOver
    ? [warning(check, 'nothing is sealed under the former ones of MASTER_SECRET', 'take them out at the next restart')]
    : [warning(check, `MASTER_SECRET has ${former.length} former ones that are still needed`, 'run "npx vidimus reseal"')];
}

/** A row that the service did not write gives nobody access; somebody may have tried. */
async function ofClients(store: OrmStore): Promise<Finding[]> {
  const forged = await store.forgedClients();
  if (forged.length === 0) return [ok('clients', 'the service itself wrote every client')];
  const findings = forged
    .slice(0, MAX_LINES)
    .map((id) =>
      fault(
        'clients',
        `the client "${id}" was changed in the database without the service, so it cannot log in`,
        'find out who writes to the database, delete the row and create the client again (docs/security.md)',
      ),
    );
  const further = forged.length - findings.length;
  if (further > 0)
    findings.push(
      fault(
        'clients',
        `${further} further clients were changed`,
        'do this for the clients above, then run the doctor again: it names the next ones',
      ),
    );
  return findings;
}

async function ofKeys(store: Store, tenantIds: readonly TenantId[], now: Date): Promise<Finding[]> {
  const findings: Finding[] = [];
  let further = 0;
  for (const tenantId of tenantIds) {
    const chains = await store.forTenant(tenantId, ({ keyChains }) => keyChains.list());
    for (const finding of chains.flatMap((chain) => endingOf(chain, now))) {
      if (findings.length < MAX_LINES) findings.push(finding);
      else further++;
    }
  }
  if (further > 0)
    findings.push(
      warning(
        'keys',
        `${further} further certificates end soon`,
        'renew the ones above, then run the doctor again: it names the next ones',
      ),
    );
  return findings.length > 0 ? findings : [ok('keys', `no certificate ends within ${ENDING_DAYS} days`)];
}

/** What renews itself is no matter until it has failed to. */
export function endingOf(chain: KeyChain, now: Date): Finding[] {
  const { id, tenantId, active, root, usages, rotationEnabled } = chain;
  if (usages.length === 0) return [];
  const ends = [
    { what: 'certificate', at: active.notAfter, renews: rotationEnabled && root !== undefined },
    ...(root === undefined ? [] : [{ what: 'authority', at: root.notAfter, renews: false }]),
  ];
  return ends.flatMap(({ what, at, renews }) => {
    const days = daysUntil(at, now);
    const name = `the ${what} of the key chain "${id}" of ${tenantId}`;
    const advice = root === undefined ? 'bring a new certificate (docs/keys.md)' : `POST /key-chain/${id}/rotate (docs/keys.md)`;
    if (at <= now) return [fault('keys', `${name} has ended`, advice)];
    return days < ENDING_DAYS && !renews ? [warning('keys', `${name} ends in ${days} days`, advice)] : [];
  });
}

/** Lists that the service publishes are signed anew by themselves, hours before they end. */
async function ofLists({ maintenance }: Store, now: Date): Promise<Finding[]> {
  const ended = await maintenance.endingTrustLists(now, LISTS);
  const advice = 'start the service, which signs the lists again while it runs; if it runs, its log has the reason';
  const findings = ended
    .slice(0, MAX_LINES)
    .map(({ tenantId, id }) => fault('lists', `the trust list "${id}" of ${tenantId} has ended`, advice));
  const held = await maintenance.heldTrustLists(new Date(now.getTime() - 48 * HOUR_MS));
  if (held > 0)
    findings.push(warning('lists', `${held} trust lists of others need somebody to look at them`, 'GET /trust/lists names them'));
  const failing = await maintenance.failingLists(new Date(now.getTime() - HOUR_MS));
  if (failing > 0)
    findings.push(warning('lists', `${failing} status lists that credentials follow cannot be had`, 'GET /cache/stats names them'));
  return findings.length > 0 ? findings : [ok('lists', 'none has ended')];
}

import { X509Certificate } from 'node:crypto';
import { NodeSignatures } from '../../adapters/crypto/signatures.ts';
import { X509Authority } from '../../adapters/crypto/x509-authority.ts';
import { SystemClock } from '../../adapters/system/clock.ts';
import { PinoLog } from '../../adapters/system/pino-log.ts';
import { NodeRandom } from '../../adapters/system/random.ts';
import { type MovedKeyChain, MoveKeyChains } from '../../application/keys/move-key-chains.ts';
import type { KeyChain } from '../../domain/keys/key-chain.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { openKeyStores } from '../wiring/key-stores.ts';
import { serviceSettings } from '../wiring/service-settings.ts';
import { commandLine, endWithUsage } from './command-line.ts';
import { openStored } from './open-stored.ts';

/**
 * `npm run kms:migrate -- <tenant> <provider>`: moves all keys of a tenant to another key provider, with the settings of the service,
 * which may run meanwhile. The command can be interrupted and started again. It ends with 0 when all keys have moved, and with 1 when a
 * key remains at its provider.
 */
const USAGE = 'npm run kms:migrate -- <tenant> <provider>';

const { positionals } = commandLine(USAGE, { allowPositionals: true });
const [tenant, provider, ...furtherArguments] = positionals;
if (tenant === undefined || provider === undefined) endWithUsage(USAGE, 'name a tenant and a provider');
if (furtherArguments.length > 0) endWithUsage(USAGE, 'only one tenant moves to one provider');
try {
  process.exitCode = (await migrate(tenant as TenantId, provider)) ? 0 : 1;
} catch (error) {
  const cause = error instanceof Error && error.cause instanceof Error ? ` (${error.cause.message})` : '';
  const reason = error instanceof Error ? error.message : String(error);
  // An invalid argument has to be corrected first; after any other failure the command can be repeated.
  const isInvalid = error instanceof Failure && error.code !== 'unavailable' && error.code !== 'conflict';
  const advice = isInvalid ? '' : '. Run this again to continue';
  console.error(`not all keys of ${tenant} were migrated: ${reason.replace(/\.$/, '')}${cause}${advice}.`);
  process.exitCode = 1;
}

/** @returns true when all keys are at the provider now. */
async function migrate(tenantId: TenantId, to: string): Promise<boolean> {
  const { store, cipher, settings } = await openStored(process.env, { withKeys: true });
  try {
    const random = new NodeRandom();
    const log = new PinoLog({ level: 'warn', version: '' });
    const keyStores = await openKeyStores(settings.KMS, { cipher, random, signatures: new NodeSignatures() });
    try {
      const { kms } = keyStores;
      await kms.assertReachable(to);
      const moveKeyChains = new MoveKeyChains({
        store,
        kms,
        clock: new SystemClock(),
        settings: serviceSettings(settings),
        certificateAuthority: new X509Authority({ kms, random }),
        log,
      });
      const host = new URL(settings.PUBLIC_URL).hostname;
      const remaining: MovedKeyChain[] = [];
      let movedCount = 0;
      for await (const each of moveKeyChains.execute(tenantId, to, (chain) => assertHost(chain, host))) {
        console.log(describe(each, to));
        if (each.leaf === 'stays' || each.authority === 'stays') remaining.push(each);
        else movedCount++;
      }
      console.error(`${movedCount} key chains are at ${to}${remaining.length === 0 ? '' : `, ${remaining.length} only in part`}`);
      return remaining.length === 0;
    } finally {
      await keyStores.close();
      await log.close();
    }
  } finally {
    await store.close();
  }
}

/** A new certificate names the host of PUBLIC_URL: without that setting the command would certify another host. */
function assertHost({ id, root, active }: KeyChain, host: string): void {
  const [leaf] = active.certificates;
  if (root === undefined || leaf === undefined) return;
  const names = new X509Certificate(Buffer.from(leaf, 'base64')).subjectAltName;
  if (names === undefined || names.split(', ').includes(`DNS:${host}`)) return;
  throw new Error(
    `PUBLIC_URL: is ${host} here, but the certificate of the key chain "${id}" is for ${names}. Run this command with the ` +
      'settings of the service; if the address has really changed, rotate the key chain first',
  );
}

function describe({ id, leaf, authority, reason }: MovedKeyChain, to: string): string {
  const key = { moved: `has a new key at ${to}`, there: `is at ${to}`, stays: 'stays where it is' }[leaf];
  const above = {
    moved: '; the key of its authority was migrated, too',
    there: '',
    none: '',
    stays: leaf === 'stays' ? '' : '; the key of its authority cannot be exported from its provider, which is still required',
  }[authority];
  return `${id}: ${key}${above}${reason === undefined ? '' : `: ${reason}`}`;
}

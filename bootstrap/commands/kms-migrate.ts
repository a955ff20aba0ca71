import { X509Certificate } from 'node:crypto';
import { NodeSignatures } from '../../adapters/crypto/signatures.ts';
import { X509Authority } from '../../adapters/crypto/x509-authority.ts';
import { SystemClock } from '../../adapters/system/clock.ts';
import { PinoLog } from '../../adapters/system/pino-log.ts';
import { NodeRandom } from '../../adapters/system/random.ts';
import { type Moved, MoveKeyChains } from '../../application/keys/move-key-chains.ts';
import type { KeyChain } from '../../domain/keys/key-chain.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { openKeyStores } from '../wiring/key-stores.ts';
import { serviceSettings } from '../wiring/service-settings.ts';
import { commandLine, endWithUsage } from './command-line.ts';
import { openStored } from './open-stored.ts';

/**
 * `npm run kms:migrate -- <tenant> <provider>`: moves all keys of a tenant to another key provider, with the settings of the service, which
 * goes on meanwhile. It may be broken off and started again. Ends with 0 when all have moved, 1 when something stays where it was.
 */
const USAGE = 'npm run kms:migrate -- <tenant> <provider>';

const { positionals } = commandLine(USAGE, { allowPositionals: true });
const [tenant, provider, ...others] = positionals;
if (tenant === undefined || provider === undefined) endWithUsage(USAGE, 'give a tenant and a provider');
if (others.length > 0) endWithUsage(USAGE, 'only one tenant moves to one provider');
try {
  process.exitCode = (await migrate(tenant as TenantId, provider)) ? 0 : 1;
} catch (error) {
  const cause = error instanceof Error && error.cause instanceof Error ? ` (${error.cause.message})` : '';
  const reason = error instanceof Error ? error.message : String(error);
  // What was asked for wrongly has to be corrected first; anything else may go better the next time.
  const isWrong = error instanceof Failure && error.code !== 'unavailable' && error.code !== 'conflict';
  const advice = isWrong ? '' : '. Run this again to go on';
  console.error(`the keys of ${tenant} have not all moved: ${reason.replace(/\.$/, '')}${cause}${advice}.`);
  process.exitCode = 1;
}

/** @returns whether everything is at the provider now. */
async function migrate(tenantId: TenantId, to: string): Promise<boolean> {
  const { store, cipher, settings } = await openStored(process.env, { withKeys: true });
  try {
    const random = new NodeRandom();
    const log = new PinoLog({ level: 'warn', version: '' });
    const keyStores = await openKeyStores(settings.KMS, { cipher, random, signatures: new NodeSignatures() });
    try {
      const { kms } = keyStores;
      await kms.assertReachable(to);
      const moving = new MoveKeyChains({
        store,
        kms,
        clock: new SystemClock(),
        settings: serviceSettings(settings),
        certificateAuthority: new X509Authority({ kms, random }),
        log,
      });
      const host = new URL(settings.PUBLIC_URL).hostname;
      const staying: Moved[] = [];
      let moved = 0;
      for await (const each of moving.execute(tenantId, to, (chain) => assertHost(chain, host))) {
        console.log(describe(each, to));
        if (each.leaf === 'stays' || each.authority === 'stays') staying.push(each);
        else moved++;
      }
      console.error(`${moved} key chains are at ${to}${staying.length === 0 ? '' : `, ${staying.length} are not wholly`}`);
      return staying.length === 0;
    } finally {
      await keyStores.close();
      log.close();
    }
  } finally {
    await store.close();
  }
}

/** A new certificate names the host of PUBLIC_URL: run without it, the command would certify another one. */
function assertHost({ id, root, active }: KeyChain, host: string): void {
  const [leaf] = active.certificates;
  if (root === undefined || leaf === undefined) return;
  const names = new X509Certificate(Buffer.from(leaf, 'base64')).subjectAltName;
  if (names === undefined || names.split(', ').includes(`DNS:${host}`)) return;
  throw new Error(
    `PUBLIC_URL: is ${host} here, and the certificate of the key chain "${id}" is for ${names}. Give this command the ` +
      'settings of the service; if the address has really changed, rotate the key chain first',
  );
}

function describe({ id, leaf, authority, reason }: Moved, to: string): string {
  const key = { moved: `has a new key at ${to}`, there: `is at ${to}`, stays: 'stays where it is' }[leaf];
  const above = {
    moved: '; the key of its authority was taken over',
    there: '',
    none: '',
    stays: leaf === 'stays' ? '' : '; the key of its authority cannot leave its provider, which is still needed',
  }[authority];
  return `${id}: ${key}${above}${reason === undefined ? '' : `: ${reason}`}`;
}

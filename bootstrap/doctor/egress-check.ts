import { setTimeout as pause } from 'node:timers/promises';
import { MasterCipher } from '../../adapters/crypto/cipher.ts';
import { NodeSignatures } from '../../adapters/crypto/signatures.ts';
import { SystemClock } from '../../adapters/system/clock.ts';
import { NodeRandom } from '../../adapters/system/random.ts';
import { Log } from '../../application/ports/log.ts';
import type { Settings } from '../../config/settings.ts';
import { openIdentity } from '../wiring/identity.ts';
import { openKeyStores } from '../wiring/key-stores.ts';
import { type Finding, fault, ok, runCheck } from './finding.ts';

const BROKER_MS = 6_000;
const STEP_MS = 100;

/** Logs nothing, because the findings report every failure. */
class SilentLog extends Log {
  override info(): void {}
  override warn(): void {}
  override error(): void {}
}

/** Checks every system outside of this machine that the settings name: that it exists, accepts the login and answers. */
export async function checkEgress(settings: Settings): Promise<readonly Finding[]> {
  return [
    ...(await runCheck('broker', () => checkBroker(settings))),
    ...(await runCheck('key-provider', () => checkKeyProviders(settings))),
    ...(await runCheck('identity-provider', () => checkIdentityProvider(settings))),
  ];
}

async function checkBroker({ AMQP_URL: address, AMQP_CA: ca }: Settings): Promise<Finding[]> {
  if (address === undefined) return [];
  const { hostname } = new URL(address);
  const { RabbitConnection } = await import('../../adapters/dispatch/rabbitmq/connection.ts');
  const connection = new RabbitConnection({ address, ca }, new SilentLog());
  try {
    await connection.open();
    const deadline = Date.now() + BROKER_MS;
    for (;;) {
      const failure = await connection.assertReachable().then(
        () => undefined,
        (error: Error) => error.message,
      );
      if (failure === undefined) return [ok('broker', `${hostname} answers`)];
      if (Date.now() > deadline)
        return [
          fault(
            'broker',
            `${hostname}: ${failure}`,
            'check AMQP_URL and that the broker runs: until then streams are slower and no events are published',
          ),
        ];
      await pause(STEP_MS);
    }
  } finally {
    await connection.close();
  }
}

async function checkKeyProviders(settings: Settings): Promise<Finding[]> {
  const cipher = new MasterCipher({ masterSecrets: settings.MASTER_SECRET });
  const ports = { cipher, random: new NodeRandom(), signatures: new NodeSignatures() };
  const stores = await openKeyStores(settings.KMS, ports);
  try {
    const findings: Finding[] = [];
    for (const { name, check } of stores.probes) {
      const advice =
        'correct its address or login in KMS_CONFIG, see docs/reference/key-stores.md: until then tenants with keys there cannot issue';
      findings.push(
        await check().then(
          () => ok('key-provider', `${name.split('/')[1]} answers`),
          (error: Error) => fault('key-provider', `${name.split('/')[1]}: ${error.message}`, advice),
        ),
      );
    }
    return findings;
  } finally {
    await stores.close();
  }
}

async function checkIdentityProvider(settings: Settings): Promise<Finding[]> {
  const ports = { clock: new SystemClock(), random: new NodeRandom(), log: new SilentLog() };
  const { probe, close } = openIdentity(settings, ports);
  try {
    if (probe === undefined) return [];
    await probe.check();
    return [ok('identity-provider', `${settings.OIDC} accepts this service`)];
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return [
      fault(
        'identity-provider',
        `${settings.OIDC}: ${reason}`,
        'check OIDC and OIDC_CLIENT_SECRET, and that the provider can be reached from here: until then no login works',
      ),
    ];
  } finally {
    await close();
  }
}

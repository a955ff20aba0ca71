import { randomBytes } from 'node:crypto';
import { Agent, request } from 'node:http';
import { MasterCipher } from '../../adapters/crypto/cipher.ts';
import type { KmsProvider } from '../../adapters/kms/kms-provider.ts';
import { LocalKms } from '../../adapters/kms/local/local-kms.ts';
import { VaultKms } from '../../adapters/kms/vault/vault-kms.ts';
import { NodeRandom } from '../../adapters/system/random.ts';
import { type StoredKey, signingKey } from '../../domain/keys/signing-key.ts';
import { findOpenBao, type OpenBao, startOpenBao } from '../support/openbao.ts';
import { hasSoftHsm, PIN, SoftHsm } from '../support/softhsm.ts';

export const KEY_STORES = ['local', 'vault', 'pkcs11'] as const;
export type KeyStoreName = (typeof KEY_STORES)[number];

/** Key provider of a run. */
export type KeyStore = {
  readonly name: KeyStoreName;
  /** Settings of the service. */
  readonly environment: Readonly<Record<string, string>>;
  /** Durations without load in milliseconds: medians of alternating blocks. */
  readonly alone: readonly { readonly what: string; readonly ms: number }[];
  close(): Promise<void>;
};

const BATCH = 50;
const ROUNDS = 9;
const DATA = Array.from({ length: BATCH }, (_, i) => `${i}.${randomBytes(300).toString('base64url')}`);

/** @returns undefined when the server is not installed here. */
export async function openKeyStore(name: KeyStoreName): Promise<KeyStore | undefined> {
  if (name === 'vault') return openVault();
  if (name === 'pkcs11') return openHsm();
  const cipher = new MasterCipher({ masterSecrets: [randomBytes(48).toString('base64url')] });
  const provider = new LocalKms({ name, cipher, random: new NodeRandom() });
  return { name, environment: {}, alone: await measure(makeBlocks(provider)), close: async () => {} };
}

async function openVault(): Promise<KeyStore | undefined> {
  const binary = findOpenBao();
  if (binary === undefined) return undefined;
  const vault = await startOpenBao(binary);
  const settings = await vault.settings();
  const provider = new VaultKms({ name: 'vault', settings, random: new NodeRandom() });
  const agent = new Agent({ keepAlive: true });
  const blocks = { ...makeBlocks(provider), ...(await blocksOfVault(vault, agent)) };
  const soloTimes = await measure(blocks);
  await provider.close();
  agent.destroy();
  const providers = { local: { type: 'local' }, vault: { ...settings, type: 'vault' } };
  return {
    ...{ name: 'vault', alone: soloTimes },
    environment: { KMS_CONFIG: JSON.stringify({ default: 'vault', providers }) },
    close: () => vault.stop(),
  };
}

async function openHsm(): Promise<KeyStore | undefined> {
  if (!hasSoftHsm()) return undefined;
  const hsm = new SoftHsm();
  hsm.addToken('bench');
  const provider = await hsm.open('pkcs11', 'bench');
  const soloTimes = await measure(makeBlocks(provider));
  const token = { type: 'pkcs11', library: hsm.library, token: 'bench', pin: PIN };
  const providers = { local: { type: 'local' }, pkcs11: token };
  return {
    ...{ name: 'pkcs11', alone: soloTimes },
    environment: { KMS_CONFIG: JSON.stringify({ default: 'pkcs11', providers }), SOFTHSM2_CONF: process.env['SOFTHSM2_CONF'] ?? '' },
    close: () => hsm.stop(),
  };
}

type Blocks = Readonly<Record<string, () => Promise<void>>>;

function makeBlocks(provider: KmsProvider): Blocks {
  let key: Promise<StoredKey> | undefined;
  const createKey = async () => {
    key ??= provider.generate('acme', 'ES256');
    return signingKey('acme', await key);
  };
  return {
    'one signature': async () => {
      await provider.sign(await createKey(), DATA[0] ?? '');
    },
    [`${BATCH} signatures`]: async () => {
      await provider.signMany(await createKey(), DATA);
    },
  };
}

/** The same by plain HTTP, as fast as Node can ask for it. */
async function blocksOfVault(vault: OpenBao, agent: Agent): Promise<Blocks> {
  await vault.call('POST', 'transit/keys/plain', { type: 'ecdsa-p256' });
  const common = { marshaling_algorithm: 'jws', prehashed: true };
  const input = () => randomBytes(32).toString('base64');
  const postJson = (body: object) =>
    new Promise<void>((resolve, reject) => {
      const text = JSON.stringify(body);
      const headers = { 'X-Vault-Token': vault.rootToken, 'Content-Length': Buffer.byteLength(text) };
      const path = `${vault.address}/v1/transit/sign/plain/sha2-256`;
      const clientRequest = request(path, { method: 'POST', agent, headers }, (answer) => {
        const chunks: Buffer[] = [];
        answer.on('data', (chunk: Buffer) => chunks.push(chunk));
        answer.on('end', () => {
          JSON.parse(Buffer.concat(chunks).toString());
          resolve();
        });
      });
      clientRequest.on('error', reject);
      clientRequest.end(text);
    });
  const inputs = Array.from({ length: BATCH }, () => ({ input: input() }));
  return {
    'one by plain HTTP': () => postJson({ ...common, input: input() }),
    [`${BATCH} by plain HTTP (batch_input)`]: () => postJson({ ...common, batch_input: inputs }),
  };
}

/** Blocks alternate, so that other load affects all of them equally. */
async function measure(blocks: Blocks): Promise<readonly { what: string; ms: number }[]> {
  const durations = new Map<string, number[]>();
  for (let roundIndex = 0; roundIndex <= ROUNDS; roundIndex++) {
    for (const [name, measuredBlock] of Object.entries(blocks)) {
      const count = name.startsWith('one') ? 200 : 40;
      const startedAt = performance.now();
      for (let i = 0; i < count; i++) await measuredBlock();
      const each = (performance.now() - startedAt) / count;
      // The first round warms up.
      if (roundIndex > 0) durations.set(name, [...(durations.get(name) ?? []), each]);
    }
  }
  return [...durations].map(([name, sortedDurations]) => ({
    what: name,
    ms: sortedDurations.sort((first, second) => first - second)[Math.floor(sortedDurations.length / 2)] ?? 0,
  }));
}

import { expect } from 'chai';
import { type Outcome, SignatureBatches } from '../../adapters/kms/vault/signature-batches.ts';
import { VaultKms } from '../../adapters/kms/vault/vault-kms.ts';
import { NodeRandom } from '../../adapters/system/random.ts';
import { type StoredKey, signingKey } from '../../domain/keys/signing-key.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { SigningAlgorithm } from '../../domain/shared/jwk.ts';
import { failing, isSignedBy } from '../contract/kms-provider.suite.ts';
import {
  describeWithOpenBao,
  type OpenBao,
  type OpenBaoProxy,
  type ProxiedCall,
  startOpenBao,
  startOpenBaoProxy,
  waitUntil,
} from '../support/openbao.ts';

const texts = (count: number, name = 'text') => Array.from({ length: count }, (_, index) => `${name} ${index}`);

describeWithOpenBao('Vault signature batches', (binary) => {
  let bao: OpenBao;
  let front: OpenBaoProxy;
  let vault: VaultKms;
  const keys = {} as Record<SigningAlgorithm, StoredKey>;
  before(async () => {
    bao = await startOpenBao(binary);
    front = await startOpenBaoProxy(bao.address);
    const settings = await bao.settings({ address: front.address });
    vault = new VaultKms({ name: 'house', settings, random: new NodeRandom() });
    for (const algorithm of ['ES256', 'EdDSA'] as const) {
      keys[algorithm] = await vault.generate('acme', algorithm);
    }
  });
  beforeEach(() => {
    front.play(() => undefined);
    front.takeCalls();
  });
  after(async () => {
    await vault?.close();
    await front?.end();
    await bao?.stop();
  });

  const sign = (data: string | Uint8Array, key = keys.ES256) => vault.sign(signingKey('acme', key), data);
  const signMany = (texts: readonly string[], key = keys.ES256) => vault.signMany(signingKey('acme', key), texts);
  /** Number of texts of each new call. */
  let seenCalls = 0;
  const sizes = () => {
    const newCalls = front.calls.slice(seenCalls).filter(({ path }) => path.includes('/sign/'));
    seenCalls = front.calls.length;
    return newCalls.map(({ body }) => inputs(body).length);
  };
  const inputs = (body: string) => (JSON.parse(body) as { batch_input: { input: string }[] }).batch_input;
  beforeEach(() => void sizes());

  function expectSigned(texts: readonly string[], signatures: readonly Uint8Array[], key = keys.ES256): void {
    expect(signatures).to.have.length(texts.length);
    for (const [index, data] of texts.entries()) {
      expect(isSignedBy(key.publicJwk, data, signatures[index] ?? new Uint8Array())).to.equal(true);
    }
  }

  function expectUnavailable(error: unknown, reason: RegExp): void {
    expect(error).to.be.instanceOf(Failure).with.property('code', 'unavailable');
    expect(((error as Failure).cause as Error).message).to.match(reason);
  }

  /** Delays the calls until the test releases them. */
  function holdCalls() {
    const { promise, resolve } = Promise.withResolvers<void>();
    let arrivals = 0;
    front.play(async () => {
      arrivals++;
      await promise;
      return undefined;
    });
    return { letGo: resolve, arrived: () => arrivals };
  }

  for (const algorithm of ['ES256', 'EdDSA'] as const) {
    it(`sign fifty texts with ${algorithm} in one call, in their order`, async () => {
      const batchTexts = texts(50);
      expectSigned(batchTexts, await signMany(batchTexts, keys[algorithm]), keys[algorithm]);
      expect(sizes()).to.deep.equal([50]);
    });
  }

  it('make no call without texts', async () => {
    expect(await signMany([])).to.deep.equal([]);
    expect(sizes()).to.deep.equal([]);
  });

  it('send the texts of one event loop turn in one call', async () => {
    const batchTexts = texts(20);
    expectSigned(batchTexts, await Promise.all(batchTexts.map((data) => sign(data))));
    expect(sizes()).to.deep.equal([20]);
  });

  it('send the texts that arrive during a call with the next call', async () => {
    const { letGo, arrived: arrivals } = holdCalls();
    const firstSignature = sign('first');
    await waitUntil(() => arrivals() === 1);
    const batchTexts = texts(30);
    const otherSignatures: Promise<Uint8Array>[] = [];
    for (const [index, data] of batchTexts.entries()) {
      otherSignatures.push(sign(data));
      if (index % 10 === 9) await new Promise((resolve) => setImmediate(resolve));
    }
    letGo();
    expectSigned(['first', ...batchTexts], [await firstSignature, ...(await Promise.all(otherSignatures))]);
    expect(sizes()).to.deep.equal([1, 30]);
  });

  it('do not delay a text for long behind an unanswered call', async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    let calls = 0;
    front.play(async () => {
      if (calls++ === 0) await promise;
      return undefined;
    });
    const slowSignature = sign('slow');
    await waitUntil(() => calls === 1);
    expectSigned(['quick'], [await sign('quick')]);
    resolve();
    expectSigned(['slow'], [await slowSignature]);
  });

  it('do not mix keys', async () => {
    const otherKey = await vault.generate('other', 'ES256');
    front.takeCalls();
    const [firstResult, secondResult] = await Promise.all([sign('a'), vault.sign(signingKey('other', otherKey), 'b')]);
    expectSigned(['a'], [firstResult]);
    expectSigned(['b'], [secondResult], otherKey);
    expect(front.takeCalls()).to.have.length(2);
  });

  it('sign the bytes of the time of the call', async () => {
    for (const key of [keys.ES256, keys.EdDSA]) {
      const bytes = new TextEncoder().encode('as requested');
      const signature = sign(bytes, key);
      bytes.fill(0);
      expectSigned(['as requested'], [await signature], key);
    }
  });

  it('split many texts', async () => {
    const batchTexts = texts(250);
    expectSigned(batchTexts, await signMany(batchTexts));
    expect(sizes().sort()).to.deep.equal([100, 100, 50]);
  });

  it('split long texts, and send a text that exceeds all limits but one alone', async () => {
    const batchTexts = ['a'.repeat(3 * 1024 ** 2), ...texts(6).map((text) => text.padEnd(150 * 1024))];
    expectSigned(batchTexts, await signMany(batchTexts, keys.EdDSA), keys.EdDSA);
    expect(sizes()).to.have.members([1, 2, 2, 2]);
  });

  it('reject a text that Vault would reject, without a call', async () => {
    const error = await failing(() => sign(new Uint8Array(16 * 1024 ** 2 + 1), keys.EdDSA));
    expectUnavailable(error, /at most 16777216 bytes/);
    expect(sizes()).to.deep.equal([]);
  });

  /** Changes one result of the calls that contain the text. */
  function corruptResults(text: string, change: (result: Record<string, unknown>) => Record<string, unknown>): void {
    const input = Buffer.from(text).toString('base64');
    front.play(async ({ path, body, headers, method }: ProxiedCall) => {
      if (!path.includes('/sign/')) return undefined;
      const spoiltIndex = inputs(body).findIndex((entry) => entry.input === input);
      if (spoiltIndex < 0) return undefined;
      const token = { 'X-Vault-Token': String(headers['x-vault-token']) };
      const answer = await bao.call(method, path, JSON.parse(body), token);
      const results = (answer.body['data'] as { batch_results: Record<string, unknown>[] }).batch_results;
      results[spoiltIndex] = change(results[spoiltIndex] ?? {});
      return { status: answer.status, body: answer.body };
    });
  }
  const ed = (data: string) => sign(data, keys.EdDSA);

  it('report the fault of one text to no other caller', async () => {
    corruptResults('text 7', () => ({ error: 'this one not', key_version: 0 }));
    const outcomes = await Promise.allSettled(texts(20).map(ed));
    expect(sizes()).to.deep.equal([20]);
    for (const [index, outcome] of outcomes.entries()) {
      if (outcome.status === 'rejected') expectUnavailable(outcome.reason, /this one not/);
      else expectSigned([`text ${index}`], [outcome.value], keys.EdDSA);
      expect(outcome.status === 'rejected', String(index)).to.equal(index === 7);
    }
  });

  it('sign all of many texts, or none', async () => {
    corruptResults('text 220', () => ({ error: 'this one not' }));
    expectUnavailable(await failing(() => signMany(texts(250), keys.EdDSA)), /this one not/);
  });

  const corruptions: Record<string, (result: Record<string, unknown>) => Record<string, unknown>> = {
    'by another version': ({ signature }) => ({ signature: String(signature).replace(':v1:', ':v2:') }),
    'that is too short': ({ signature }) => ({ signature: String(signature).slice(0, -4) }),
    'that is too long': ({ signature }) => ({ signature: `${signature}AAAA` }),
    'in another alphabet': ({ signature }) => ({ signature: String(signature).replace(/.{4}$/, '+/==') }),
    'that is a ciphertext of another form': () => ({ signature: 'AAAA' }),
    'that is not a string': () => ({ signature: 1 }),
    'that is missing': () => ({}),
  };
  for (const [name, change] of Object.entries(corruptions)) {
    it(`return no signature ${name}`, async () => {
      corruptResults('spoilt', change);
      const [spoiltOutcome, otherOutcome] = await Promise.allSettled(['spoilt', 'other'].map(ed));
      expect(otherOutcome?.status).to.equal('fulfilled');
      expectUnavailable((spoiltOutcome as PromiseRejectedResult).reason, /with another key or algorithm/);
    });
  }

  it('reject a response with fewer or more signatures than texts', async () => {
    for (const batch_results of [[], [{}, {}], undefined, 'x']) {
      front.play(() => ({ status: 200, body: { data: { batch_results } } }));
      expectUnavailable(await failing(() => sign('text')), /did not answer each/);
      front.play(() => undefined);
      await sign('text');
    }
  });
});

describe('SignatureBatches', () => {
  const toError = (error: Error) => error;

  it('limits the number of waiting texts and their characters', async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const send = async (_key: string, texts: readonly string[]): Promise<readonly Outcome[]> => {
      await promise;
      return texts.map(() => new Uint8Array(1));
    };
    const manyBatches = new SignatureBatches<string>({ send, toError: toError });
    const waitingSignatures = Array.from({ length: 20_000 }, () => manyBatches.sign('key', 'key', 'text'));
    expect(await failing(() => manyBatches.sign('key', 'key', 'text'))).to.be.instanceOf(Error);
    const longTexts = new SignatureBatches<string>({ send, toError: toError });
    const longText = 'x'.repeat(16 * 1024 ** 2);
    for (let i = 0; i < 4; i++) waitingSignatures.push(longTexts.sign('key', 'key', longText));
    expect(await failing(() => longTexts.sign('key', 'key', 'text'))).to.be.instanceOf(Error);
    resolve();
    await Promise.all(waitingSignatures);
    expect(await manyBatches.sign('key', 'key', 'text')).to.have.length(1);
    expect(await longTexts.sign('key', 'key', 'text')).to.have.length(1);
  });

  it('starts a full call at once, although another call is under way', async () => {
    const sentCounts: number[] = [];
    const { promise, resolve } = Promise.withResolvers<void>();
    const send = async (_key: string, texts: readonly string[]): Promise<readonly Outcome[]> => {
      sentCounts.push(texts.length);
      await promise;
      return texts.map(() => new Uint8Array(1));
    };
    const batches = new SignatureBatches<string>({ send, toError: toError });
    const signatures = [batches.sign('key', 'key', 'first')];
    await waitUntil(() => sentCounts.length === 1);
    for (const text of texts(130)) signatures.push(batches.sign('key', 'key', text));
    await waitUntil(() => sentCounts.length === 2);
    expect(sentCounts.slice(0, 2)).to.deep.equal([1, 100]);
    resolve();
    await Promise.all(signatures);
    expect(sentCounts).to.deep.equal([1, 100, 30]);
  });

  it('reports the failure of a batch to all its callers, and continues', async () => {
    let fails = true;
    const send = async (_key: string, texts: readonly string[]): Promise<readonly Outcome[]> => {
      if (fails) throw new Error('gone');
      return texts.map(() => new Uint8Array(1));
    };
    const batches = new SignatureBatches<string>({ send, toError: toError });
    const outcomes = await Promise.allSettled(texts(3).map((text) => batches.sign('key', 'key', text)));
    expect(outcomes.map(({ status }) => status)).to.deep.equal(['rejected', 'rejected', 'rejected']);
    fails = false;
    expect(await batches.sign('key', 'key', 'text')).to.have.length(1);
  });
});

import { expect } from 'chai';
import { Argon2Secrets } from '../../adapters/crypto/argon2-secrets.ts';
import { deriveKey, MasterCipher } from '../../adapters/crypto/cipher.ts';
import { OrmStore } from '../../adapters/persistence/orm-store.ts';
import { NodeRandom } from '../../adapters/system/random.ts';
import { Failure } from '../../domain/shared/failure.ts';
import { databases, type TestDatabase } from '../support/databases.ts';
import { processorTimeUntil } from '../support/measurements.ts';
import { addTenant, aKeyChain } from './store/builders.ts';

/** Verifies each secret under a client name, which is the hash unless a test gives another one. */
class NamedSecrets extends Argon2Secrets {
  override verify(secret: string, hash: string, name = hash): Promise<boolean> {
    return super.verify(secret, hash, name);
  }
}

describe('Argon2Secrets', () => {
  const secrets = new NamedSecrets();
  let hash: string;

  before(async () => {
    hash = await secrets.hash('correct horse');
  });

  it('stores method, cost, salt and tag, and never the secret', () => {
    expect(hash).to.match(/^argon2id\$m=19456,t=2,p=1\$[\w-]{22}\$[\w-]{43}$/);
    expect(hash).to.not.contain('correct');
  });

  it('salts: the same secret has a different hash each time', async () => {
    expect(await secrets.hash('correct horse')).to.not.equal(hash);
  });

  it('verifies the correct secret and no other, also in repeated calls', async () => {
    for (let round = 0; round < 2; round++) {
      expect(await secrets.verify('correct horse', hash)).to.equal(true);
      expect(await secrets.verify('correct horsf', hash)).to.equal(false);
      expect(await secrets.verify('', hash)).to.equal(false);
    }
  });

  it('verifies a hash of another process', async () => {
    expect(await new NamedSecrets().verify('correct horse', hash)).to.equal(true);
  });

  it('caches a verified secret, but not for another hash', async () => {
    await secrets.verify('correct horse', hash);
    const cpuTime = await processorTimeUntil(async () => {
      for (let i = 0; i < 100; i++) expect(await secrets.verify('correct horse', hash)).to.equal(true);
    });
    // Hashing the secret each time takes two seconds.
    expect(cpuTime).to.be.lessThan(500);
    expect(await secrets.verify('correct horse', await secrets.hash('battery staple'))).to.equal(false);
  });

  const malformations: Record<string, (hash: string) => string> = {
    'the empty text': () => '',
    'a plaintext secret': () => 'correct horse',
    'another method': (text) => text.replace('argon2id', 'argon2d'),
    'a cut tag': (text) => text.slice(0, -1),
    'excessive memory': (text) => text.replace('m=19456', 'm=999999'),
    'excessive passes': (text) => text.replace('t=2', 't=99'),
    'no passes': (text) => text.replace('t=2', 't=0'),
    'no lanes': (text) => text.replace('p=1', 'p=0'),
  };
  for (const [name, change] of Object.entries(malformations)) {
    it(`returns false for ${name} instead of the hash`, async () => {
      expect(await secrets.verify('correct horse', change(hash))).to.equal(false);
    });
  }

  it('uses the cost that the stored hash states', async () => {
    expect(await secrets.verify('correct horse', hash.replace('t=2', 't=3'))).to.equal(false);
  });

  it('answers many simultaneous verifications of one secret with one computation', async () => {
    const limitedSecrets = new NamedSecrets({ atOnce: 1, waiting: 0 });
    const answers = await Promise.all(Array.from({ length: 50 }, () => limitedSecrets.verify('correct horse', hash)));
    expect(new Set(answers)).to.deep.equal(new Set([true]));
  });

  it('rejects a verification when too many computations wait, and recovers', async () => {
    const limitedSecrets = new NamedSecrets({ atOnce: 1, waiting: 1 });
    const results = await Promise.allSettled(['a', 'b', 'c', 'd'].map((secret) => limitedSecrets.verify(secret, hash)));
    const rejections = results.flatMap((result) => (result.status === 'rejected' ? [result.reason as unknown] : []));
    expect(rejections).to.have.length(2);
    for (const failure of rejections) {
      expect(failure).to.be.instanceOf(Failure);
      expect(failure).to.have.property('code', 'too_many_requests');
      expect(failure).to.have.nested.property('details.retryAfterSeconds', 1);
    }
    expect(await limitedSecrets.verify('correct horse', hash)).to.equal(true);
  });

  it('limits the computations of one client, and recovers', async () => {
    const attempts = Array.from({ length: 20 }, (_, i) => secrets.verify(`guess ${i}`, hash));
    const results = await Promise.allSettled(attempts);
    expect(results.filter(({ status }) => status === 'fulfilled')).to.have.length(3);
    expect(await new NamedSecrets().verify('correct horse', hash)).to.equal(true);
    expect(await secrets.verify('guess again', hash)).to.equal(false);
  });

  it('delays neither a client nor a new secret during a flood for unknown clients or another client', async () => {
    const busySecrets = new NamedSecrets();
    const otherHash = await busySecrets.hash('battery staple');
    const flood = Array.from({ length: 150 }, (_, i) => [
      busySecrets.verify(`guess ${i}`, '', `unknown ${i}`),
      busySecrets.verify(`guess ${i}`, otherHash),
    ]).flat();
    const floodResults = Promise.allSettled(flood);
    expect(await busySecrets.verify('correct horse', hash)).to.equal(true);
    expect(await busySecrets.hash('new')).to.match(/^argon2id/);
    const rejections = (await floodResults).filter(({ status }) => status === 'rejected');
    expect(rejections).to.have.length(150 - 3);
  });

  it('allows as many attempts for an unknown client name as for a known one, and takes as long', async () => {
    const namedSecrets = new NamedSecrets();
    const attempts = async (clientHash: string, name: string) => {
      let results: PromiseSettledResult<boolean>[] = [];
      const cpuTime = await processorTimeUntil(async () => {
        results = await Promise.allSettled(Array.from({ length: 24 }, (_, i) => namedSecrets.verify(`guess ${i}`, clientHash, name)));
      });
      const codes = results.flatMap((result) => (result.status === 'rejected' ? [(result.reason as Failure).code] : []));
      return { codes, spent: cpuTime };
    };
    await attempts(hash, 'known');
    const forKnownClient = await attempts(hash, 'known');
    const forUnknownClient = await attempts('', 'unknown');
    expect(forUnknownClient.codes).to.deep.equal(forKnownClient.codes);
    expect(forUnknownClient.spent / forKnownClient.spent).to.be.within(0.2, 5);
    // Other clients with unknown names cannot be recognized by the queue.
    const flood = Array.from({ length: 60 }, (_, i) => attempts('', `crowd ${i}`));
    const duringFlood = await attempts('', 'amid');
    expect(duringFlood.codes).to.deep.equal(forKnownClient.codes);
    await Promise.all(flood);
  });
});

const FORMER_SECRET = 'the secret that sealed everything so far';
const OTHER_SECRET = 'a secret that this database never saw';

for (const kind of databases()) {
  describe(`database on ${kind.name} under another master secret`, () => {
    let database: TestDatabase | undefined;
    const openStore = (...masterSecrets: string[]) =>
      OrmStore.open({ url: database?.url ?? '', poolSize: 2 }, new MasterCipher({ masterSecrets }));
    before(async function () {
      database = await kind.open();
      if (database === undefined) return this.skip();
      const store = await openStore(FORMER_SECRET);
      const tenantId = await addTenant(store);
      await store.forTenant(tenantId, (repositories) => repositories.keyChains.add(aKeyChain(tenantId, 'one')), { by: 'system' });
      await store.close();
    });
    after(() => database?.drop());

    it('is not opened, and the error names the remedy', async () => {
      const error = await openStore(OTHER_SECRET).then(
        () => undefined,
        (error: unknown) => error as Error,
      );
      expect(error?.message).to.match(/MASTER_SECRET is not the one.*list every former secret after it/);
    });

    it('is opened without a former secret under which data were only read', async () => {
      const cipher = new MasterCipher({ masterSecrets: [OTHER_SECRET, FORMER_SECRET] });
      const readingOptions = { url: database?.url ?? '', poolSize: 2, migrates: false };
      await (await OrmStore.open(readingOptions, cipher)).close();
      await (await openStore(FORMER_SECRET)).close();
    });

    it('is opened while the former secret is listed', async () => {
      await (await openStore(FORMER_SECRET)).close();
      await (await openStore(OTHER_SECRET, FORMER_SECRET)).close();
      await (await openStore(FORMER_SECRET, OTHER_SECRET)).close();
    });

    it('is not opened without a secret under which data were sealed in the meantime', async () => {
      for (const lacking of [FORMER_SECRET, OTHER_SECRET]) {
        const error = await openStore(lacking).then(
          () => undefined,
          (error: unknown) => error as Error,
        );
        expect(error?.message).to.match(/or not all of them are set/);
      }
    });
  });
}

const FIRST = 'a first master secret of decent length';
const SECOND = 'a second master secret of decent length';

describe('MasterCipher', () => {
  const cipher = new MasterCipher({ masterSecrets: [FIRST] });
  const sealed = cipher.seal('Erika Mustermann', 'sessions/claims/acme/1');

  it('opens a text that it sealed in the same context', () => {
    expect(cipher.open(sealed, 'sessions/claims/acme/1').toString()).to.equal('Erika Mustermann');
  });

  it('seals bytes and the empty text', () => {
    const bytes = Buffer.from([0, 255, 128, 10]);
    expect(cipher.open(cipher.seal(bytes, 'here'), 'here')).to.deep.equal(bytes);
    expect(cipher.open(cipher.seal('', 'here'), 'here')).to.have.length(0);
  });

  it('seals the same text differently each time', () => {
    expect(cipher.seal('same', 'here')).to.not.equal(cipher.seal('same', 'here'));
  });

  it('rejects a ciphertext in another context', () => {
    expect(() => cipher.open(sealed, 'sessions/claims/other/1')).to.throw();
  });

  it('rejects a ciphertext of another master secret', () => {
    const otherCipher = new MasterCipher({ masterSecrets: [SECOND] });
    expect(() => otherCipher.open(sealed, 'sessions/claims/acme/1')).to.throw('unknown master secret');
  });

  it('seals under the first master secret and opens under all of them', () => {
    const rotatedCipher = new MasterCipher({ masterSecrets: [SECOND, FIRST] });
    expect(rotatedCipher.open(sealed, 'sessions/claims/acme/1').toString()).to.equal('Erika Mustermann');
    const newlySealed = rotatedCipher.seal('new', 'here');
    expect(new MasterCipher({ masterSecrets: [SECOND] }).open(newlySealed, 'here').toString()).to.equal('new');
    expect(() => cipher.open(newlySealed, 'here')).to.throw();
  });

  it('rejects a ciphertext with any one changed character', () => {
    const start = sealed.lastIndexOf('.') + 1;
    for (let at = start; at < sealed.length; at++) {
      const replacement = sealed[at] === 'A' ? 'B' : 'A';
      const tampered = sealed.slice(0, at) + replacement + sealed.slice(at + 1);
      expect(() => cipher.open(tampered, 'sessions/claims/acme/1'), `character ${at}`).to.throw();
    }
  });

  it('rejects a text that it never sealed', () => {
    const [version, keyId, body] = sealed.split('.');
    const foreignTexts = [
      'plaintext',
      '',
      `v2.${keyId}.${body}`,
      `${version}.${keyId}.`,
      `${version}.${keyId}.AAAA`,
      `${sealed}.x`,
      `${sealed}=`,
    ];
    for (const text of foreignTexts) expect(() => cipher.open(text, 'sessions/claims/acme/1'), text).to.throw();
  });

  it('requires a master secret', () => {
    expect(() => new MasterCipher({ masterSecrets: [] })).to.throw('master secret');
  });

  it('derives one key per purpose', () => {
    expect(deriveKey(FIRST, 'one')).to.have.length(32);
    expect(deriveKey(FIRST, 'one')).to.deep.equal(deriveKey(FIRST, 'one'));
    expect(deriveKey(FIRST, 'one')).to.not.deep.equal(deriveKey(FIRST, 'two'));
    expect(deriveKey(FIRST, 'one')).to.not.deep.equal(deriveKey(SECOND, 'one'));
  });

  it('creates different MACs for another text, purpose or secret', () => {
    const macs = cipher.macs('one');
    const code = macs.make('text');
    expect(macs.make('text')).to.equal(code);
    expect(macs.check('text', code)).to.equal('genuine');
    expect(macs.check('other', code)).to.equal('forged');
    expect(macs.check('text', `${code}A`)).to.equal('forged');
    expect(macs.check('text', code.slice(0, -1))).to.equal('forged');
    expect(cipher.macs('two').check('text', code)).to.equal('forged');
    expect(new MasterCipher({ masterSecrets: [SECOND] }).macs('one').check('text', code)).to.equal('unknown_key');
    expect(new MasterCipher({ masterSecrets: [SECOND, FIRST] }).macs('one').check('text', code)).to.equal('genuine');
    expect(macs.check('text', '')).to.equal('unknown_key');
  });
});

describe('NodeRandom', () => {
  it('returns the requested number of bytes', () => {
    const random = new NodeRandom();
    for (const length of [0, 1, 16, 1023, 1024, 1025, 20_000]) expect(random.bytes(length)).to.have.length(length);
  });

  it('creates base64url tokens of the requested strength', () => {
    const random = new NodeRandom();
    expect(random.token()).to.match(/^[\w-]{22}$/);
    expect(random.token(192)).to.match(/^[\w-]{32}$/);
    expect(random.token(256)).to.match(/^[\w-]{43}$/);
  });

  it('never returns the same bytes twice, over many refills of its pool', () => {
    const random = new NodeRandom();
    const drawn = new Set<string>();
    for (let i = 0; i < 2000; i++) {
      drawn.add(random.bytes(i % 2 === 0 ? 16 : 1_000).toString('hex'));
      drawn.add(Buffer.from(random.token(), 'base64url').toString('hex'));
    }
    expect(drawn.size).to.equal(4000);
    expect(drawn.has('00'.repeat(16))).to.equal(false);
  });

  it('does not change bytes that it returned', () => {
    const random = new NodeRandom();
    const bytes = random.bytes(32);
    const copy = Buffer.from(bytes);
    for (let i = 0; i < 500; i++) random.bytes(200);
    expect(bytes).to.deep.equal(copy);
  });
});

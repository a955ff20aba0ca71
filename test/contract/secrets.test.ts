import { expect } from 'chai';
import { Argon2Secrets } from '../../adapters/crypto/argon2-secrets.ts';
import { deriveKey, MasterCipher } from '../../adapters/crypto/cipher.ts';
import { OrmStore } from '../../adapters/persistence/orm-store.ts';
import { NodeRandom } from '../../adapters/system/random.ts';
import { Failure } from '../../domain/shared/failure.ts';
import { databases, type TestDatabase } from '../support/databases.ts';
import { processorTimeUntil } from '../support/measurements.ts';
import { addTenant, aKeyChain } from './store/builders.ts';

/** Whose names are their hashes, unless a test says who. */
class Named extends Argon2Secrets {
  override verify(secret: string, hash: string, name = hash): Promise<boolean> {
    return super.verify(secret, hash, name);
  }
}

describe('Argon2Secrets', () => {
  const secrets = new Named();
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
    expect(await new Named().verify('correct horse', hash)).to.equal(true);
  });

  it('caches a verified secret, but not for another hash', async () => {
    await secrets.verify('correct horse', hash);
    const spent = await processorTimeUntil(async () => {
      for (let i = 0; i < 100; i++) expect(await secrets.verify('correct horse', hash)).to.equal(true);
    });
    // Hashing the secret each time takes two seconds.
    expect(spent).to.be.lessThan(500);
    expect(await secrets.verify('correct horse', await secrets.hash('battery staple'))).to.equal(false);
  });

  const malformed: Record<string, (hash: string) => string> = {
    'the empty text': () => '',
    'a plaintext secret': () => 'correct horse',
    'another method': (text) => text.replace('argon2id', 'argon2d'),
    'a cut tag': (text) => text.slice(0, -1),
    'excessive memory': (text) => text.replace('m=19456', 'm=999999'),
    'excessive passes': (text) => text.replace('t=2', 't=99'),
    'no passes': (text) => text.replace('t=2', 't=0'),
    'no lanes': (text) => text.replace('p=1', 'p=0'),
  };
  for (const [name, change] of Object.entries(malformed)) {
    it(`returns false for ${name} in place of the hash`, async () => {
      expect(await secrets.verify('correct horse', change(hash))).to.equal(false);
    });
  }

  it('uses the cost that the stored hash states', async () => {
    expect(await secrets.verify('correct horse', hash.replace('t=2', 't=3'))).to.equal(false);
  });

  it('answers many simultaneous verifications of one secret with one computation', async () => {
    const narrow = new Named({ atOnce: 1, waiting: 0 });
    const answers = await Promise.all(Array.from({ length: 50 }, () => narrow.verify('correct horse', hash)));
    expect(new Set(answers)).to.deep.equal(new Set([true]));
  });

  it('rejects a verification when too many computations wait, and recovers', async () => {
    const narrow = new Named({ atOnce: 1, waiting: 1 });
    const results = await Promise.allSettled(['a', 'b', 'c', 'd'].map((secret) => narrow.verify(secret, hash)));
    const refused = results.flatMap((result) => (result.status === 'rejected' ? [result.reason as unknown] : []));
    expect(refused).to.have.length(2);
    for (const failure of refused) {
      expect(failure).to.be.instanceOf(Failure);
      expect(failure).to.have.property('code', 'too_many_requests');
      expect(failure).to.have.nested.property('details.retryAfterSeconds', 1);
    }
    expect(await narrow.verify('correct horse', hash)).to.equal(true);
  });

  it('limits the computations of one client, and recovers', async () => {
    const attempts = Array.from({ length: 20 }, (_, i) => secrets.verify(`guess ${i}`, hash));
    const results = await Promise.allSettled(attempts);
    expect(results.filter(({ status }) => status === 'fulfilled')).to.have.length(3);
    expect(await new Named().verify('correct horse', hash)).to.equal(true);
    expect(await secrets.verify('guess again', hash)).to.equal(false);
  });

  it('delays neither a client nor a new secret during a flood for unknown clients or another client', async () => {
    const crowded = new Named();
    const other = await crowded.hash('battery staple');
    const flood = Array.from({ length: 150 }, (_, i) => [
      crowded.verify(`guess ${i}`, '', `stranger ${i}`),
      crowded.verify(`guess ${i}`, other),
    ]).flat();
    const ended = Promise.allSettled(flood);
    expect(await crowded.verify('correct horse', hash)).to.equal(true);
    expect(await crowded.hash('new')).to.match(/^argon2id/);
    const refused = (await ended).filter(({ status }) => status === 'rejected');
    expect(refused).to.have.length(150 - 3);
  });

  it('allows as many attempts for an unknown client name as for a known one, and takes as long', async () => {
    const asked = new Named();
    const attempts = async (known: string, name: string) => {
      let results: PromiseSettledResult<boolean>[] = [];
      const spent = await processorTimeUntil(async () => {
        results = await Promise.allSettled(Array.from({ length: 24 }, (_, i) => asked.verify(`guess ${i}`, known, name)));
      });
      const codes = results.flatMap((result) => (result.status === 'rejected' ? [(result.reason as Failure).code] : []));
      return { codes, spent };
    };
    await attempts(hash, 'known');
    const known = await attempts(hash, 'known');
    const unknown = await attempts('', 'unknown');
    expect(unknown.codes).to.deep.equal(known.codes);
    expect(unknown.spent / known.spent).to.be.within(0.2, 5);
    // Others with unknown names do not show by a queue.
    const crowd = Array.from({ length: 60 }, (_, i) => attempts('', `crowd ${i}`));
    const amid = await attempts('', 'amid');
    expect(amid.codes).to.deep.equal(known.codes);
    await Promise.all(crowd);
  });
});

const FORMER = 'the secret that sealed everything so far';
const OTHER = 'a secret that this database never saw';

for (const kind of databases()) {
  describe(`database on ${kind.name} under another master secret`, () => {
    let database: TestDatabase | undefined;
    const open = (...masterSecrets: string[]) =>
      OrmStore.open({ url: database?.url ?? '', poolSize: 2 }, new MasterCipher({ masterSecrets }));
    before(async function () {
      database = await kind.open();
      if (database === undefined) return this.skip();
      const store = await open(FORMER);
      const tenantId = await addTenant(store);
      await store.forTenant(tenantId, (own) => own.keyChains.add(aKeyChain(tenantId, 'one')), { by: 'system' });
      await store.close();
    });
    after(() => database?.drop());

    it('is not opened, and the error names the remedy', async () => {
      const refusal = await open(OTHER).then(
        () => undefined,
        (error: unknown) => error as Error,
      );
      expect(refusal?.message).to.match(/MASTER_SECRET is not the one.*list every former secret after it/);
    });

    it('is opened without a former secret under which data were only read', async () => {
      const cipher = new MasterCipher({ masterSecrets: [OTHER, FORMER] });
      const reading = { url: database?.url ?? '', poolSize: 2, migrates: false };
      await (await OrmStore.open(reading, cipher)).close();
      await (await open(FORMER)).close();
    });

    it('is opened while the former secret is listed', async () => {
      await (await open(FORMER)).close();
      await (await open(OTHER, FORMER)).close();
      await (await open(FORMER, OTHER)).close();
    });

    it('is not opened without a secret under which data were sealed in the meantime', async () => {
      for (const lacking of [FORMER, OTHER]) {
        const refusal = await open(lacking).then(
          () => undefined,
          (error: unknown) => error as Error,
        );
        expect(refusal?.message).to.match(/or not all of them are set/);
      }
    });
  });
}

const FIRST = 'a first master secret of decent length';
const SECOND = 'a second master secret of decent length';

describe('MasterCipher', () => {
  const cipher = new MasterCipher({ masterSecrets: [FIRST] });
  const sealed = cipher.seal('Erika Mustermann', 'sessions/claims/acme/1');

  it('opens a text that it sealed for the same place', () => {
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

  it('rejects a ciphertext that was moved to another place', () => {
    expect(() => cipher.open(sealed, 'sessions/claims/other/1')).to.throw();
  });

  it('rejects a ciphertext of another master secret', () => {
    const other = new MasterCipher({ masterSecrets: [SECOND] });
    expect(() => other.open(sealed, 'sessions/claims/acme/1')).to.throw('unknown master secret');
  });

  it('seals under the first master secret and opens under all of them', () => {
    const rotated = new MasterCipher({ masterSecrets: [SECOND, FIRST] });
    expect(rotated.open(sealed, 'sessions/claims/acme/1').toString()).to.equal('Erika Mustermann');
    const anew = rotated.seal('new', 'here');
    expect(new MasterCipher({ masterSecrets: [SECOND] }).open(anew, 'here').toString()).to.equal('new');
    expect(() => cipher.open(anew, 'here')).to.throw();
  });

  it('rejects a ciphertext with any one changed character', () => {
    const start = sealed.lastIndexOf('.') + 1;
    for (let at = start; at < sealed.length; at++) {
      const other = sealed[at] === 'A' ? 'B' : 'A';
      const changed = sealed.slice(0, at) + other + sealed.slice(at + 1);
      expect(() => cipher.open(changed, 'sessions/claims/acme/1'), `character ${at}`).to.throw();
    }
  });

  it('rejects a text that it never sealed', () => {
    const [version, keyId, body] = sealed.split('.');
    const foreign = [
      'plaintext',
      '',
      `v2.${keyId}.${body}`,
      `${version}.${keyId}.`,
      `${version}.${keyId}.AAAA`,
      `${sealed}.x`,
      `${sealed}=`,
    ];
    for (const text of foreign) expect(() => cipher.open(text, 'sessions/claims/acme/1'), text).to.throw();
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
    const seen = new Set<string>();
    for (let i = 0; i < 2000; i++) {
      seen.add(random.bytes(i % 2 === 0 ? 16 : 1_000).toString('hex'));
      seen.add(Buffer.from(random.token(), 'base64url').toString('hex'));
    }
    expect(seen.size).to.equal(4000);
    expect(seen.has('00'.repeat(16))).to.equal(false);
  });

  it('does not change bytes that it returned', () => {
    const random = new NodeRandom();
    const given = random.bytes(32);
    const copy = Buffer.from(given);
    for (let i = 0; i < 500; i++) random.bytes(200);
    expect(given).to.deep.equal(copy);
  });
});

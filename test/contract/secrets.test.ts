import { expect } from 'chai';
import { Argon2Secrets } from '../../adapters/crypto/argon2-secrets.ts';
import { Failure } from '../../domain/shared/failure.ts';
import { processorTimeUntil } from '../support/processor-time.ts';

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

  it('salts: the same secret has another hash each time', async () => {
    expect(await secrets.hash('correct horse')).to.not.equal(hash);
  });

  it('verifies the right secret and no other, also when asked again', async () => {
    for (let round = 0; round < 2; round++) {
      expect(await secrets.verify('correct horse', hash)).to.equal(true);
      expect(await secrets.verify('correct horsf', hash)).to.equal(false);
      expect(await secrets.verify('', hash)).to.equal(false);
    }
  });

  it('verifies what another process hashed', async () => {
    expect(await new Named().verify('correct horse', hash)).to.equal(true);
  });

  it('remembers a verified secret, but not for another hash', async () => {
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
    it(`verifies ${name} in place of the hash as false`, async () => {
      expect(await secrets.verify('correct horse', change(hash))).to.equal(false);
    });
  }

  it('follows the cost that the stored form states', async () => {
    expect(await secrets.verify('correct horse', hash.replace('t=2', 't=3'))).to.equal(false);
  });

  it('answers many simultaneous questions about one secret with one computation', async () => {
    const narrow = new Named({ atOnce: 1, waiting: 0 });
    const answers = await Promise.all(Array.from({ length: 50 }, () => narrow.verify('correct horse', hash)));
    expect(new Set(answers)).to.deep.equal(new Set([true]));
  });

  it('refuses when too many computations wait, and recovers', async () => {
    const narrow = new Named({ atOnce: 1, waiting: 1 });
    const results = await Promise.allSettled(
      ['a', 'b', 'c', 'd'].map((secret) => narrow.verify(secret, hash)),
    );
    const refused = results.flatMap((result) =>
      result.status === 'rejected' ? [result.reason as unknown] : [],
    );
    expect(refused).to.have.length(2);
    for (const failure of refused) {
      expect(failure).to.be.instanceOf(Failure);
      expect(failure).to.have.property('code', 'too_many_requests');
      expect(failure).to.have.nested.property('details.retryAfterSeconds', 1);
    }
    expect(await narrow.verify('correct horse', hash)).to.equal(true);
  });

  it('keeps few places for one client, and recovers', async () => {
    const attempts = Array.from({ length: 20 }, (_, i) => secrets.verify(`guess ${i}`, hash));
    const results = await Promise.allSettled(attempts);
    expect(results.filter(({ status }) => status === 'fulfilled')).to.have.length(3);
    expect(await new Named().verify('correct horse', hash)).to.equal(true);
    expect(await secrets.verify('guess again', hash)).to.equal(false);
  });

  it('lets neither strangers nor floods on another client delay a client or a new secret', async () => {
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

  it('lets in as many attempts on a name that nobody has, and takes as long over them', async () => {
    const asked = new Named();
    const attempts = async (known: string, name: string) => {
      let results: PromiseSettledResult<boolean>[] = [];
      const spent = await processorTimeUntil(async () => {
        results = await Promise.allSettled(
          Array.from({ length: 24 }, (_, i) => asked.verify(`guess ${i}`, known, name)),
        );
      });
      const codes = results.flatMap((result) =>
        result.status === 'rejected' ? [(result.reason as Failure).code] : [],
      );
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

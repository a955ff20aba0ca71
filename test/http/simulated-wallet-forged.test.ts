import { expect } from 'chai';
import { type Exchange, SimulatedWallet } from '../../tools/wallet/core/index.ts';
import { type Name, SimulatedWorld } from '../support/simulated-world.ts';

describe('a simulated wallet that is deceived', () => {
  let world: SimulatedWorld;

  before(async () => {
    world = await SimulatedWorld.open();
  });
  after(() => world.close());

  /** A wallet between which and the service somebody changes what is answered at some addresses. */
  const deceived = (at: RegExp, change: (body: string) => string) => {
    const heard: Exchange[] = [];
    const fetch = async (input: Parameters<typeof globalThis.fetch>[0]) => {
      const answer = await globalThis.fetch(input);
      if (!at.test(new URL((input as Request).url).pathname)) return answer;
      return new Response(change(await answer.text()), { status: answer.status, headers: answer.headers });
    };
    return { heard, wallet: new SimulatedWallet({ fetch, onExchange: (one) => heard.push(one) }) };
  };
  const saidOf = (work: Promise<unknown>) =>
    work.then(
      () => 'taken',
      ({ message }: Error) => message,
    );
  const inCredential = (change: (text: string) => string) => (body: string) => {
    const answer = JSON.parse(body) as { credentials?: { credential: string }[] };
    if (answer.credentials === undefined) return body;
    return JSON.stringify({
      ...answer,
      credentials: answer.credentials.map(({ credential }) => ({ credential: change(credential) })),
    });
  };
  const asBytes = (text: string, from: string, to: string) =>
    Buffer.from(Buffer.from(text, 'base64url').toString('latin1').replace(from, to), 'latin1').toString(
      'base64url',
    );
  const salted = (value: string) =>
    Buffer.from(JSON.stringify(['salt', 'degree', value])).toString('base64url');
  const FORGED: readonly [string, Name, (text: string) => string, RegExp][] = [
    [
      'claims that nobody signed',
      'diploma',
      (text) => `${text}${salted('Physics')}~`,
      /belongs to nothing that was signed/,
    ],
    [
      'another signature',
      'diploma',
      (text) => text.replace(/\.[^.~]{10}([^.~]+~)/, '.AAAAAAAAAA$1'),
      /signature/,
    ],
    [
      'an element that nobody signed',
      'licence',
      (text) => asBytes(text, 'Lovelace', 'Lovelady'),
      /family_name is not what the issuer signed/,
    ],
    ['another document type', 'licence', (text) => asBytes(text, '5.1.mDL', '5.1.mDX'), /did not sign it/],
  ];
  for (const [what, name, change, message] of FORGED)
    it(`takes no ${name} with ${what}`, async () => {
      const { wallet: other } = deceived(/\/credential$/, inCredential(change));
      const read = await other.readOffer((await world.offer([name])).uri);
      expect(await saidOf(other.accept(read))).to.match(message);
      expect(other.credentials).to.deep.equal([]);
    });

  it('reads no request that was changed on the way', async () => {
    const { wallet: other } = deceived(/\/request\//, (jwt) => {
      const [header, payload = '', signature] = jwt.split('.');
      return [header, asBytes(payload, '"degree"', '"salary"'), signature].join('.');
    });
    expect(await saidOf(other.readRequest((await world.ask('diploma')).uri))).to.match(/signature|verif/i);
  });

  it('reads no endless answer, and tells of a call without an answer', async () => {
    const { wallet: other, heard } = deceived(/./, () => ' '.repeat(21 * 1024 * 1024));
    expect(await saidOf(other.readOffer((await world.offer(['diploma'])).uri))).to.not.equal('taken');
    expect(heard.at(-1)?.error).to.match(/more than 20971520 bytes/);
    const gone = 'openid-credential-offer://?credential_offer_uri=http%3A%2F%2F127.0.0.1%3A9%2F';
    expect(await saidOf(other.readOffer(gone))).to.not.equal('taken');
    expect(heard.at(-1)).to.include({ url: 'http://127.0.0.1:9/' }).and.not.have.property('status');
  });
});

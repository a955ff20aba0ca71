import { expect } from 'chai';
import { encodeCbor } from '../../../domain/formats/cbor/encode.ts';
import { Failure } from '../../../domain/shared/failure.ts';
import type { Changes, World } from './kit.ts';
import { brief, cardQueries, DAY_MS, LICENCE, NAMESPACE, responseOf, TrialWorld } from './trial-kit.ts';

describe('What a question is tried with', () => {
  let kit: TrialWorld;
  let world: World;
  beforeEach(async () => {
    kit = await TrialWorld.make();
    ({ world } = kit);
  });

  const tried = (...given: Parameters<TrialWorld['tried']>) => kit.tried(...given);
  const card = (changes: Changes = {}) => kit.card(changes);

  it('takes an mdoc in each form in which it comes', async () => {
    await world.configure({ dcql_query: { credentials: [LICENCE] } });
    const bare = kit.licence();
    const bytes = Buffer.from(bare, 'base64url');
    const response = responseOf(bare);
    for (const text of [
      bare,
      bytes.toString('hex'),
      bytes.toString('base64'),
      response.toString('base64url'),
      JSON.stringify({ vp_token: { licence: [response.toString('base64url')] } }),
      JSON.stringify({
        protocol: 'x',
        data: { vp_token: { licence: [response.toString('base64url')] } },
      }),
    ]) {
      const trial = await tried(text);
      expect(brief(trial), text.slice(0, 30)).to.deep.equal([[['licence', 'passed']]]);
      expect(trial.untried).to.deep.equal(['nonce', 'audience', 'device signature', 'transaction data']);
      expect(trial.presentations[0]?.shown).to.deep.equal([
        [NAMESPACE, 'name'],
        [NAMESPACE, 'born'],
      ]);
      expect(JSON.stringify(trial)).to.not.include('Erika');
    }
  });

  it('refuses an mdoc that was changed, ended, is of a stranger or another one', async () => {
    await world.configure({ dcql_query: { credentials: [LICENCE] } });
    const changed = Buffer.from(kit.licence(), 'base64url');
    changed.write('Urika', changed.indexOf('Erika'));
    const reasons = [];
    for (const text of [
      changed.toString('hex'),
      kit.licence({ signed: new Date(world.clock.time - 2 * DAY_MS) }),
      kit.licence({ issuer: await world.keyChain('stranger', 'x', ['signing']) }),
      kit.licence({ docType: 'org.example.other.1' }),
    ])
      reasons.push(brief(await tried(text))[0]?.[0]?.[1]);
    expect(reasons).to.deep.equal([
      'digest_mismatch',
      'credential_expired',
      'untrusted_chain',
      'doctype_mismatch',
    ]);
  });

  it('says what a question still lacks, and holds each to what it came for', async () => {
    await world.configure({ dcql_query: { credentials: [...cardQueries('one', 'two'), LICENCE] } });
    const both = responseOf(kit.licence(), kit.licence()).toString('base64url');
    const mdocs = await tried(both);
    expect(brief(mdocs)).to.deep.equal([[['licence', 'passed']], [['licence', 'passed']]]);
    expect(mdocs.missing).to.deep.equal(['one', 'two']);
    expect(brief(await tried(card()))).to.deep.equal([
      [
        ['one', 'passed'],
        ['two', 'passed'],
      ],
    ]);
    const named = await tried(JSON.stringify({ vp_token: { two: [card()], licence: kit.licence() } }));
    expect(brief(named)).to.deep.equal([[['two', 'passed']], [['licence', 'passed']]]);
    expect(named.missing).to.deep.equal(['one']);
  });

  const garbage: [string, string, RegExp][] = [
    ['words', 'not a credential', /neither an SD-JWT VC nor an mdoc/],
    ['bytes', 'ffffffffffff', /neither an SD-JWT VC nor an mdoc/],
    ['other CBOR', 'a0', /no mdoc/],
    ['broken JSON', '{"vp_token":', /begins like JSON/],
    ['other JSON', '{"vp_token": [1]}', /no object of presentations/],
    ['a number for a presentation', '{"vp_token": {"card": [5]}}', /no text/],
    ['an encrypted answer', '{"response": "a.b.c.d.e"}', /encrypted answer/],
    ['an encrypted mdoc', encodeCbor(['dcapi', {}]).toString('base64url'), /encrypted answer/],
    ['a JWT', 'a.b.c', /it is a JWT/],
    ['many', JSON.stringify({ card: Array.from({ length: 20 }, () => 'e30.e30.x~') }), /more than 10/],
  ];
  for (const [what, text, message] of garbage) {
    it(`takes no ${what}`, async () => {
      await world.configure();
      const failure = await tried(text).then(
        () => undefined,
        (error: unknown) => error,
      );
      expect(failure).to.be.instanceOf(Failure).and.to.include({ code: 'invalid_input' });
      expect((failure as Failure).details.errors?.[0]?.path).to.equal('presentation');
      expect((failure as Failure).details.errors?.[0]?.message).to.match(message);
    });
  }

  it('costs no more than so many pairs', async () => {
    const ids = Array.from({ length: 26 }, (_, index) => `card-${index}`);
    await world.configure({ dcql_query: { credentials: cardQueries(...ids) } });
    const failure = await tried(JSON.stringify({ a: [card(), card()] })).then(
      () => undefined,
      (error: unknown) => error,
    );
    expect(failure).to.be.instanceOf(Failure).and.to.include({ code: 'invalid_input' });
  });

  it('is there for those who may use it', async () => {
    await world.configure();
    for (const attempt of [tried(card(), ['other']), tried(card(), null, 'unknown')]) {
      const failure = await attempt.then(
        () => undefined,
        (error: unknown) => error,
      );
      expect(failure).to.be.instanceOf(Failure).and.to.include({ code: 'not_found' });
    }
  });
});

import { createHash, randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { bindToRequest, type FetchedRequest, type HeldCredential, QUERY, responseForm, Shop } from '../support/present.ts';

const PAYMENT = 'urn:eudi:sca:payment:1';
const BANK = 'https://bank.example/pay';
const payload = {
  transaction_id: '8D8AC610-566D-4EF0-9C22-186B2A5ED793',
  payee: { name: 'Refectory', id: 'DE00ZZZ00000000001' },
  currency: 'EUR',
  amount: 4.2,
};
const entry = (changes: object = {}) => ({
  type: PAYMENT,
  credential_ids: ['card'],
  transaction_data_hashes_alg: ['sha-256'],
  payload,
  ...changes,
});
const AMR = [{ knowledge: 'pin_6_or_more_digits' }, { possession: 'key_in_remote_wscd' }];

describe('strong customer authentication (TS12)', () => {
  let shop: Shop;
  let held: HeldCredential;

  before(async () => {
    shop = await Shop.open();
    held = await shop.issue();
    await shop.configure({ id: 'pay', transaction_data: [entry()] });
    await shop.configure({ id: 'plain' });
    const transactionDataSchemas = { [BANK]: PAYMENT };
    await shop.configure({ id: 'bank', transactionDataSchemas, transaction_data: [entry({ type: BANK })] });
    const webhook = { url: `${shop.backend.url}/hook` };
    await shop.configure({ id: 'told', transaction_data: [entry()], webhook });
    await shop.configure({ id: 'other', transaction_data: [{ type: 'urn:x', credential_ids: ['card'] }] });
  });
  after(() => shop.close());

  const hashesOf = ({ payload: { transaction_data: texts } }: FetchedRequest) =>
    (texts as string[]).map((text) => createHash('sha256').update(text).digest('base64url'));
  async function confirm(asked: FetchedRequest, claims: object) {
    const own = { transaction_data_hashes: hashesOf(asked), transaction_data_hashes_alg: 'sha-256', ...claims };
    return shop.postResponse(asked, await responseForm(asked, { card: [bindToRequest(asked, held, ['name'], own)] }));
  }
  const strong = (changes: object = {}) => ({ jti: randomUUID(), amr: AMR, response_mode: 'direct_post.jwt', ...changes });

  for (const id of ['pay', 'bank']) {
    it(`is returned with the verified data, for a type of ${id === 'pay' ? 'TS12' : 'a rulebook'}`, async () => {
      const asked = await shop.requestPresentation(id);
      const claims = strong();
      const answer = await confirm(asked, claims);
      expect(answer.status, answer.text).to.equal(200);
      const { status, credentials } = await shop.session(asked.session);
      expect(status).to.equal('completed');
      const [{ values, authentication }] = credentials;
      expect(values).to.deep.equal({ name: 'Ada' });
      expect(authentication).to.deep.equal({ jti: claims.jti, amr: AMR });
    });
  }

  it('is reported to backends', async () => {
    const asked = await shop.requestPresentation('told');
    const claims = strong();
    expect((await confirm(asked, claims)).status).to.equal(200);
    const call = shop.backend.calls.at(-1)?.body as { credentials: { authentication: object }[] };
    expect(call.credentials[0]?.authentication).to.deep.equal({ jti: claims.jti, amr: AMR });
  });

  it('is not requested if no transaction is confirmed', async () => {
    const asked = await shop.requestPresentation('other');
    expect((await confirm(asked, { transaction_data_hashes_alg: undefined })).status).to.equal(200);
    const [credential] = (await shop.session(asked.session))['credentials'];
    expect(credential).to.not.have.property('authentication');
  });

  const wrong: Record<string, object> = {
    'no code': { jti: undefined },
    'a code that is not a string': { jti: 7 },
    'a code that can be guessed': { jti: '123456' },
    'no factors': { amr: undefined },
    'one factor': { amr: AMR.slice(0, 1) },
    'two factors of one category': { amr: [{ knowledge: 'pattern' }, { knowledge: 'other' }] },
    'a factor that is a text': { amr: ['pin', 'hwk'] },
    'a factor of no known category': { amr: [...AMR, { habit: 'other' }] },
    'a factor by no known method': { amr: [{ knowledge: 'PIN' }, { possession: 'other' }] },
    'two categories in one object': { amr: [{ knowledge: 'other', possession: 'other' }, ...AMR] },
    'factors without end': { amr: Array.from({ length: 11 }, () => AMR[0]).concat(AMR) },
    'no response mode': { response_mode: undefined },
    'another response mode': { response_mode: 'direct_post' },
    'the names of an earlier draft': { amr: undefined, authentication_factors: AMR },
  };
  for (const [what, changes] of Object.entries(wrong)) {
    it(`is rejected with ${what}`, async () => {
      const asked = await shop.requestPresentation('pay');
      expect((await confirm(asked, strong(changes))).status).to.equal(400);
      const { status, failure, credentials } = await shop.session(asked.session);
      expect([status, credentials]).to.deep.equal(['failed', undefined]);
      expect(failure.message).to.match(/strong_authentication/);
    });
  }

  it('is rejected with the hash of another payment', async () => {
    const asked = await shop.requestPresentation('pay');
    const other = await shop.requestPresentation('told');
    const transaction_data_hashes = hashesOf(other);
    const dearer = await shop.requestPresentation('plain', { transaction_data: [entry({ payload: { ...payload, amount: 42 } })] });
    for (const hashes of [hashesOf(dearer), [...transaction_data_hashes, ...hashesOf(dearer)]]) {
      const fresh = await shop.requestPresentation('pay');
      const answer = await confirm(fresh, strong({ transaction_data_hashes: hashes }));
      expect(answer.status).to.equal(400);
    }
    expect((await confirm(asked, strong())).status).to.equal(200);
  });

  const refusals: Record<string, readonly [object, RegExp]> = {
    'no payload': [{ payload: undefined }, /transaction_data\.0\.payload.*is missing/],
    'a payload without a payee': [{ payload: { ...payload, payee: undefined } }, /payload\.payee/],
    'an amount that is a text': [{ payload: { ...payload, amount: '4.20' } }, /payload\.amount/],
    'a currency in small letters': [{ payload: { ...payload, currency: 'eur' } }, /payload\.currency/],
    'a property that the schema does not have': [{ payload: { ...payload, tip: 1 } }, /payload\.tip.*no such property/],
    'more digits than the currency has': [{ payload: { ...payload, amount: 4.205 } }, /payload\.amount.*digits/],
    'a fraction of a currency without one': [{ payload: { ...payload, currency: 'JPY', amount: 4.2 } }, /payload\.amount.*digits/],
    'an invalid time': [{ payload: { ...payload, date_time: 'today' } }, /payload\.date_time.*such as/],
    'a date of a recurring payment outside': [
      { payload: { ...payload, execution_date: '2026-12-01T00:00:00Z', recurrence: { frequency: 'MNTH' } } },
      /payload\.execution_date/,
    ],
    'no algorithm': [{ transaction_data_hashes_alg: undefined }, /transaction_data_hashes_alg/],
    'a type that TS12 does not have': [{ type: 'urn:eudi:sca:gift:1' }, /transaction_data\.0\.type/],
    'a mandate for nothing': [{ type: 'urn:eudi:sca:emandate:1', payload: { transaction_id: 'a' } }, /payload\.purpose/],
    'a login without an action': [{ type: 'urn:eudi:sca:login_risk_transaction:1', payload: { transaction_id: 'a' } }, /payload\.action/],
  };
  for (const [what, [changes, path]] of Object.entries(refusals)) {
    it(`cannot be requested with ${what}`, async () => {
      const transaction_data = [entry(changes)];
      const body = { id: 'wrong', dcql_query: QUERY, transaction_data };
      const written = await shop.call('POST', '/verifier/config', body);
      expect(written.status, written.text).to.equal(400);
      expect(written.text).to.match(path);
      const request = { response_type: 'uri', requestId: 'plain', transaction_data };
      const asked = await shop.call('POST', '/verifier/offer', request);
      expect(asked.status, asked.text).to.equal(400);
      expect(asked.text).to.match(path);
    });
  }

  it('can be requested with every type', async () => {
    const transaction_id = 'a';
    const party = { legal_name: 'A', brand_name: 'B', domain_name: 'a.example' };
    const others = [
      entry({ type: 'urn:eudi:sca:account_access:1', payload: { transaction_id, aisp: party } }),
      entry({ type: 'urn:eudi:sca:emandate:1', payload: { transaction_id, payment_payload: payload } }),
      entry({
        type: 'urn:eudi:sca:login_risk_transaction:1',
        payload: { transaction_id, action: 'Log in', date_time: '2026-11-24T10:00:00+01:00' },
      }),
      entry({ payload: { ...payload, pisp: party, recurrence: { frequency: 'MNTH', number: 12 } } }),
    ];
    const asked = await shop.requestPresentation('plain', { transaction_data: others });
    expect((await confirm(asked, strong())).status).to.equal(200);
  });
});

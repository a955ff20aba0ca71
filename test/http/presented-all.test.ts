import { expect } from 'chai';
import { bind, formOf, type Held, Shop } from '../support/present.ts';

describe('what a wallet discloses', () => {
  let shop: Shop;
  let held: Held;

  before(async () => {
    shop = await Shop.open();
    held = await shop.issue('card-status');
    const webhook = { url: `${shop.backend.url}/hook` };
    await shop.configure({ id: 'all', values: undefined, webhook });
    await shop.configure({ id: 'asked', values: 'requested', webhook });
  });
  after(() => shop.close());
  beforeEach(() => shop.backend.forget());

  const presented = async (configuration: string, names?: readonly string[]) => {
    const asked = await shop.ask(configuration);
    const answer = await shop.post(asked, await formOf(asked, { card: [bind(asked, held, names)] }));
    expect(answer.status, answer.text).to.equal(200);
    const [{ values }] = (await shop.session(asked.session)).credentials;
    expect(shop.backend.calls[0]?.body.credentials[0].values).to.deep.equal(values);
    return values;
  };

  it('reaches the backend whole, without what binds it to its holder and its status', async () => {
    const values = await presented('all');
    expect(values).to.deep.include({ name: 'Ada', age: 36, vct: 'urn:card:1' });
    expect(values).to.not.have.any.keys('cnf', 'status', '_sd', '_sd_alg');
  });
  it('is what was disclosed, and nothing that was withheld', async () => {
    expect(await presented('all', ['name']))
      .to.deep.include({ name: 'Ada' })
      .and.not.have.property('age');
  });
  it('is cut to what was asked for where the configuration says so', async () => {
    expect(await presented('asked')).to.deep.equal({ name: 'Ada' });
  });

  it('may be asked for longer than sessions are kept', async () => {
    expect((await shop.call('PUT', '/session-config', { ttlSeconds: 60 })).status).to.equal(200);
    await shop.configure({ id: 'patient', lifeTime: 100_000 });
    const asked = await shop.ask('patient');
    const { createdAt, expiresAt } = await shop.session(asked.session);
    expect(Date.parse(expiresAt) - Date.parse(createdAt)).to.equal(100_000_000);
    expect(asked.payload['exp'] - asked.payload['iat']).to.equal(100_000);
    await shop.call('DELETE', '/session-config');
  });
});

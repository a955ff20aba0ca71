import { readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { expect } from 'chai';
import { databases, rawSql, type TestDatabase } from '../support/databases.ts';
import { Shop } from '../support/present.ts';
import { RawWallet } from '../support/raw-wallet.ts';
import { startTestService } from '../support/test-service.ts';

describe('what sessions leave in the database', () => {
  let database: TestDatabase | undefined;
  after(() => database?.drop());

  it('names nobody: claims, keys and codes are sealed', async () => {
    database = await databases()[0]?.open();
    if (database === undefined) throw new Error('SQLite is always there');
    const { url } = database;
    const shop = await Shop.open({}, () => startTestService({ DATABASE_URL: url }));
    const key = 'key-of-the-webhook-in-the-clear';
    const auth = { type: 'apiKey', config: { headerName: 'X-Key', value: key } };
    const webhook = { url: `${shop.backend.url}/told`, auth };
    const credentialClaims = {
      card: { type: 'inline', claims: { name: 'Wilhelmina Unmistakable', age: 36 } },
    };
    await shop.configure({ id: 'told', webhook });
    const held = await shop.issue('card', { credentialClaims });
    const json = {
      response_type: 'uri',
      flow: 'pre_authorized_code',
      credentialConfigurationIds: ['card'],
      tx_code: 'tx-code-in-the-clear',
      credentialClaims,
    };
    const { uri } = (await shop.call('POST', '/issuer/offer', json, shop.acme.token)).body;
    const code = await new RawWallet(shop.service, 'acme').code(uri);
    const asked = await shop.ask('told');
    expect((await shop.present(asked, held)).status).to.equal(200);
    expect(shop.backend.at('/told')[0]?.body.credentials[0].values.name).to.equal('Wilhelmina Unmistakable');
    const secret = 'secret-of-a-client-in-the-clear';
    const roles = ['issuance:offer'];
    await shop.call('POST', '/client', { clientId: 'new', roles, secret }, shop.acme.token);

    shop.backend.on('/later', (reply) => reply.end(JSON.stringify({ deferred: true, interval: 1 })));
    const later = { card: { type: 'webhook', webhook: { url: `${shop.backend.url}/later` } } };
    const deferred = await shop.call(
      'POST',
      '/issuer/offer',
      { ...json, tx_code: undefined, credentialClaims: later },
      shop.acme.token,
    );
    const wallet = new RawWallet(shop.service, 'acme');
    const promised = await wallet.request(await wallet.accessToken(deferred.body.uri), 'card');
    expect(promised.status, promised.text).to.equal(202);
    const fail = `/issuer/deferred/${promised.body.transaction_id}/fail`;
    const failure = { errorMessage: 'no record of Wilhelmina Unmistakable' };
    expect((await shop.call('POST', fail, failure, shop.acme.token)).status).to.equal(200);

    const secrets = ['Unmistakable', key, 'tx-code-in-the-clear', code, secret, asked.payload['nonce']];
    const rows = await rawSql(url, async (run) => {
      const tables = await run(`select name from sqlite_master where type = 'table'`);
      return Promise.all(tables.map(({ name }) => run(`select * from "${name}"`)));
    });
    expect(rows.flat()).to.have.length.greaterThan(20);
    const file = url.slice('sqlite:'.length);
    const files = readdirSync(dirname(file)).filter((name) => name.startsWith(basename(file)));
    const bytes = Buffer.concat(files.map((name) => readFileSync(join(dirname(file), name))));
    expect(bytes.includes(asked.session), 'this is the right file').to.equal(true);
    for (const value of secrets) {
      expect(value).to.have.length.greaterThan(10);
      expect(JSON.stringify(rows), `rows with ${value}`).to.not.include(value);
      expect(bytes.includes(value), `bytes with ${value}`).to.equal(false);
    }
    await shop.close();
  });
});

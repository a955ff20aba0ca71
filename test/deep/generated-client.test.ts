import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { collectRoutes } from '../../bootstrap/routes.ts';
import { clientTypes } from '../../tools/write-client-types.ts';
import { isClientGeneratorHere, makeClient } from '../support/generated-client.ts';
import { decode, type Held, present } from '../support/present.ts';
import { newKey, RawWallet } from '../support/raw-wallet.ts';
import { ROOT, startTestService, type TestService } from '../support/test-service.ts';

describe('A client that is generated from the API document', () => {
  let service: TestService;

  before(async function () {
    if (!isClientGeneratorHere()) this.skip();
    service = await startTestService();
  });
  after(() => service?.close());

  it('compiles strictly and serves a whole issuance and a whole verification', async () => {
    const client = await makeClient((await service.call('GET', '/openapi.json')).body);
    try {
      expect(client.faults).to.equal('');
      const { wholeRun } = await client.load();
      let held: Held | undefined;
      const { seen } = await wholeRun(
        { address: service.address, ...ROOT },
        {
          async collect(tenant, uri) {
            const wallet = new RawWallet(service, tenant);
            const holder = newKey();
            const issued = await wallet.request(await wallet.accessToken(uri), 'badge', { key: holder });
            expect(issued.status, issued.text).to.equal(200);
            held = { text: issued.body.credentials[0].credential, holder, session: '' };
          },
          async present(uri) {
            const url = new URL(uri).searchParams.get('request_uri') ?? '';
            const { text } = await service.call('GET', url);
            if (held === undefined) throw new Error('nothing was collected');
            const answer = await present(service, { session: '', uri, url, text, ...decode(text) }, held);
            expect(answer.status, answer.text).to.equal(200);
          },
        },
      );
      expect(seen[0]).to.equal('Ada');
      expect(seen[1]).to.include('CN=');
    } finally {
      client.remove();
    }
  });

  it('has the types that the published one was made with (npm run client:generate)', () => {
    const committed = readFileSync(new URL('../../client/api.d.ts', import.meta.url), 'utf8');
    // A difference of nine thousand lines tells nobody anything.
    const isUpToDate = clientTypes(collectRoutes(service.service.container)) === committed;
    expect(isUpToDate, 'npm run client:generate').to.equal(true);
  });
});

import { expect } from 'chai';
import { processDisclosures } from '../../domain/formats/sd-jwt/disclosures.ts';
import { openSdJwt } from '../../domain/formats/sd-jwt/parse.ts';
import { created, offerBody } from '../support/populated.ts';
import { RawWallet } from '../support/raw-wallet.ts';
import { createTenant, startTestService, type TestService } from '../support/test-service.ts';

const JPEG = '/9j/4AAQSkZJRg==';
const CARD = {
  id: 'card',
  config: { format: 'dc+sd-jwt', display: [{ name: 'Card', locale: 'en' }] },
  vct: 'urn:card:1',
  schema: {
    type: 'object',
    properties: {
      name: { type: 'string' },
      title: { type: 'string' },
      picture: { type: 'string', contentEncoding: 'base64', contentMediaType: 'image/jpeg' },
    },
  },
  disclosureFrame: { _sd: ['name', 'title', 'picture'] },
};

describe('What the schema of a credential says of its claims', () => {
  let service: TestService;
  let token: string;
  let wallet: RawWallet;

  before(async () => {
    service = await startTestService();
    ({ token } = await createTenant(service, 'acme'));
    await created(service, token, '/issuer/credentials', CARD);
    wallet = new RawWallet(service, 'acme');
  });
  after(() => service.close());

  const offering = (claims: object) => ({
    ...offerBody('card'),
    credentialClaims: { card: { type: 'inline', claims } },
  });
  const issued = async (claims: object) => {
    const { uri } = await created(service, token, '/issuer/offer', offering(claims));
    const answer = await wallet.request(await wallet.accessToken(uri), 'card');
    expect(answer.status, answer.text).to.equal(200);
    const { issuer, disclosures } = openSdJwt(answer.body.credentials[0].credential);
    const digests = issuer.payload['_sd'] as readonly string[];
    return { digests, disclosures, claims: processDisclosures(issuer.payload, disclosures).claims };
  };

  it('makes all holders look alike by the number of digests, whatever they lack', async () => {
    const all = await issued({ name: 'Ada', title: 'Countess', picture: JPEG });
    const some = await issued({ name: 'Grace' });
    const none = await issued({});
    expect([all, some, none].map(({ digests }) => new Set(digests).size)).to.deep.equal([3, 3, 3]);
    expect([all, some, none].map(({ disclosures }) => disclosures.length)).to.deep.equal([3, 1, 0]);
    expect(some.claims).to.include({ name: 'Grace' }).and.not.have.any.keys('title', 'picture');
  });

  it('has bytes issued as data URIs', async () => {
    const bare = await issued({ name: 'Ada', picture: JPEG });
    expect(bare.claims).to.include({ picture: `data:image/jpeg;base64,${JPEG}`, name: 'Ada' });
    const own = await issued({ picture: 'data:image/png;base64,AAEC' });
    expect(own.claims).to.include({ picture: 'data:image/png;base64,AAEC' });
  });

  it('refuses a text that is no bytes, at its path and without repeating it', async () => {
    const json = offering({ name: 'Ada', picture: 'no picture at all' });
    const answer = await service.call('POST', '/issuer/offer', { token, json });
    expect([answer.status, answer.body.errors[0].path], answer.text).to.deep.equal([
      400,
      'credentialClaims.card.claims.picture',
    ]);
    expect(answer.text).to.not.include('no picture');
  });
});

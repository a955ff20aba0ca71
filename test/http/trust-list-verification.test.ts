import { expect } from 'chai';
import { Backend } from '../support/backend.ts';
import { Shop } from '../support/present.ts';
import { certify, pem } from '../support/test-certificates.ts';
import { trustList } from '../support/trust-list.ts';

describe('a published trust list, read by a verifier', () => {
  let shop: Shop;
  let operator: string;
  const asAcme = async (method: string, path: string, json?: unknown) => {
    const answer = await shop.call(method, path, json, shop.acme.token);
    expect(answer.status, answer.text).to.be.oneOf([200, 201]);
    return answer.body;
  };

  before(async () => {
    shop = await Shop.open();
    operator = (await asAcme('GET', '/key-chain/trust-list')).rootCertificate;
  });
  after(() => shop.close());

  /** The outcome of a presentation of a revocable credential where only this list counts. */
  const judged = async (list: string, signedBy = operator) => {
    const trustList = `${shop.service.address}/acme/trust-list/${list}`;
    await shop.configure({ id: list, trustAnchors: [{ trustList, signedBy: [signedBy] }] });
    const asked = await shop.ask(list);
    await shop.present(asked, await shop.issue('card-status'));
    return (await shop.call('GET', `/session/${asked.session}`)).body.status;
  };
  const own = {
    type: 'internal',
    issuerKeyChainId: 'signing',
    info: { name: 'Acme', country: 'DE', streetAddress: 'Weg 1' },
  };

  it('vouches for the issuer that it names, and for its status lists', async () => {
    const entities = [{ ...own, revocationKeyChainId: 'status-list' }];
    await asAcme('POST', '/trust-list', { id: 'issuers', entities });
    expect(await judged('issuers')).to.equal('completed');
  });

  it('vouches for nobody else, and for nobody when somebody else signed it', async () => {
    const other = pem(await certify({ name: 'Other', ca: true }));
    const external = {
      type: 'external',
      issuerCertPem: other,
      info: { name: 'Other', country: 'DE', streetAddress: 'Weg 1' },
    };
    await asAcme('POST', '/trust-list', { id: 'others', entities: [external] });
    await asAcme('POST', '/trust-list', { id: 'foreign', entities: [own] });
    expect(await judged('others')).to.equal('failed');
    expect(await judged('foreign', other)).to.equal('failed');
  });

  it('may begin its numbers anew once the verifier forgot the old ones on demand', async () => {
    const signer = await certify({ name: 'Operator' });
    const { rootCertificate } = await asAcme('GET', '/key-chain/signing');
    const certificates = [rootCertificate.replace(/-----[^-]+-----|\s/g, '')];
    const entities = [{ name: 'Acme', services: [{ type: 'EAA/Issuance', certificates }] }];
    const backend = await Backend.start();
    const judgedBy = async (sequenceNumber: number) => {
      backend.on('/list', (response) => {
        const list = trustList({ entities, signer, sequenceNumber }, Math.floor(Date.now() / 1000));
        response.writeHead(200, { 'Content-Type': 'application/jwt' }).end(list);
      });
      const trustAnchors = [{ trustList: `${backend.url}/list`, signedBy: [pem(signer)] }];
      await shop.configure({ id: 'renumbered', trustAnchors });
      const asked = await shop.ask('renumbered');
      await shop.present(asked, await shop.issue('card'));
      return (await shop.call('GET', `/session/${asked.session}`)).body.status;
    };
    const forget = async (query: string) =>
      expect((await shop.call('DELETE', `/cache/trust-list${query}`)).status).to.equal(204);
    try {
      expect(await judgedBy(7)).to.equal('completed');
      for (const query of ['', '?releases=false']) {
        await forget(query);
        expect(await judgedBy(1), query).to.equal('failed');
      }
      expect((await shop.call('DELETE', '/cache/trust-list?releases=yes')).status).to.equal(400);
      await forget('?releases=true');
      expect(await judgedBy(1)).to.equal('completed');
    } finally {
      await backend.close();
    }
  });

  it('of wallet providers vouches for no issuer', async () => {
    const LoTEType = 'http://uri.etsi.org/19602/LoTEType/EUWalletProvidersList';
    const scheme = {
      LoTEType,
      SchemeOperatorName: [{ lang: 'en', value: 'Lister' }],
      SchemeOperatorAddress: {
        SchemeOperatorPostalAddress: [{ lang: 'en', StreetAddress: 'Main Street 1', Country: 'DE' }],
        SchemeOperatorElectronicAddress: [{ lang: 'en', uriValue: 'mailto:lists@acme.example' }],
      },
      SchemeName: [{ lang: 'en', value: 'DE:Wallets' }],
      SchemeInformationURI: [{ lang: 'en', uriValue: 'https://acme.example/scheme' }],
      PolicyOrLegalNotice: [{ LoTELegalNotice: 'As published.' }],
    };
    const data = { LoTE: { ListAndSchemeInformation: scheme } };
    const lister = { id: 'lister', usageType: 'trustList', organization: 'Lister', country: 'DE' };
    await asAcme('POST', '/key-chain', lister);
    await asAcme('POST', '/trust-list', { id: 'wallets', keyChainId: 'lister', entities: [own], data });
    expect(await judged('wallets')).to.equal('failed');
  });
});

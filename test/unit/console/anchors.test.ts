import { expect } from 'chai';
import { nameOf, newAmong } from '../../../adapters/http/console/app/pages/trust/anchors.ts';
import { issuing } from '../../../adapters/http/console/app/pages/trust/key-chain.ts';
import { certify, pem } from '../../support/test-certificates.ts';

describe('Whom the console has trusted', () => {
  it('is called what people call it, whatever was typed', async () => {
    const ca = await certify({ name: 'CA', ca: true });
    expect(nameOf({ certificate: pem(ca) })).to.match(/^a certificate of CN=CA, until /);
    expect(nameOf({ certificate: 'no certificate' })).to.equal('a certificate that ends with ocertificate');
    expect(nameOf({ keyChainId: 'signing' })).to.equal('the key chain signing');
    expect(nameOf({ trustList: 'https://a.example' })).to.equal('the trust list https://a.example');
    expect(nameOf({ trustList: '' })).to.equal('the trust list without an address');
    expect(nameOf({ ownAuthorities: true })).to.equal('all own key chains that issue');
    for (const odd of [null, 5, 'text', [], {}, { certificate: 7 }, { trustList: {} }])
      expect(nameOf(odd)).to.be.a('string');
  });

  it('is added once, however its certificate is broken into lines', async () => {
    const certificate = pem(await certify({ name: 'CA', ca: true }));
    const other = pem(await certify({ name: 'Other', ca: true }));
    const before = [{ certificate, pin: true }, { keyChainId: 'a' }];
    const added = [
      { certificate: certificate.replaceAll('\n', '\r\n') },
      { certificate: other },
      { certificate: other },
      { keyChainId: 'a' },
      { trustList: 'https://a.example', follow: {} },
      { trustList: 'https://a.example' },
    ];
    expect(newAmong(before, added)).to.deep.equal([added[1], added[4]]);
  });

  it('is of a tenant what issues under an authority of its own', () => {
    const chains = [
      { id: 'a', usages: ['signing'], rootCertificate: 'PEM' },
      { id: 'b', usages: ['access'], rootCertificate: 'PEM' },
      { id: 'c', usages: ['signing'], rootCertificate: null },
      { id: 'd', rootCertificate: 'PEM' },
    ];
    expect(issuing(chains).map(({ id }) => id)).to.deep.equal(['a']);
  });
});

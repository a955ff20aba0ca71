import { X509Certificate } from 'node:crypto';
import { expect } from 'chai';
import sinon from 'sinon';
import { pretend, rsaKey } from '../support/rsa-certificates.ts';
import { certify, DOCUMENT_SIGNER, READER, WEB_SERVER } from '../support/test-certificates.ts';
import { CARD_QUERY, LICENCE_QUERY, openWorld, type World } from './negative-verification/world.ts';

describe('Certificates in the answers of wallets', () => {
  let world: World;
  before(async () => {
    world = await openWorld();
  });
  after(() => world?.close());
  afterEach(() => sinon.restore());

  it('of strangers with large RSA keys have no signature verified, in sixty presentations', async () => {
    const spki = rsaKey({ bits: 4096 });
    const chains: string[][] = [];
    for (let i = 0; i < 60; i++) {
      const middle = await pretend({ subject: `CN=A${i}`, issuer: `CN=B${i}` }, spki);
      const leaf = await pretend({ subject: `CN=L${i}`, issuer: `CN=A${i}` }, spki, false);
      chains.push([leaf, middle]);
    }
    const query = { credentials: [{ ...CARD_QUERY, multiple: true }] };
    const asked = await world.ask({ dcql_query: query });
    const { key } = world.issuer;
    const cards = chains.map((chain) => world.card(asked, { issuer: { key, chain } }));
    const verified = sinon.spy(X509Certificate.prototype, 'verify');
    expect((await world.answer(asked, { card: cards })).status).to.equal(400);
    expect(verified.callCount).to.equal(0);
    expect((await world.session(asked))['failure'].message).to.include('card: untrusted_chain');
  });

  it('are not read when there are more presentations than were asked for', async () => {
    const asked = await world.ask();
    const read = sinon.spy(X509Certificate.prototype, 'publicKey', ['get']);
    const { status } = await world.answer(asked, { card: [world.card(asked), world.card(asked)] });
    expect(status).to.equal(400);
    expect(read.get.callCount).to.equal(0);
  });

  it('are not read of presentations that no set asks for', async () => {
    const query = {
      credentials: [CARD_QUERY, { ...CARD_QUERY, id: 'spare' }],
      credential_sets: [{ options: [['card']] }],
    };
    const asked = await world.ask({ dcql_query: query });
    const verified = sinon.spy(X509Certificate.prototype, 'verify');
    const leaf = await certify({ name: 'Unasked', by: world.authority });
    const spare = world.card(asked, { issuer: { key: leaf, chain: [leaf.certificate] } });
    expect((await world.answer(asked, { card: [world.card(asked)], spare: [spare] })).status).to.equal(200);
    expect(verified.callCount).to.be.at.most(1);
    const { report } = await world.session(asked);
    expect(JSON.stringify(report)).to.not.include('Unasked').and.not.include('"spare"');
  });

  describe('that sign a driving licence', () => {
    const outcome = async (mdlProfile: string | undefined, ...[bend]: Parameters<typeof certify>) => {
      const asked = await world.ask({ dcql_query: { credentials: [LICENCE_QUERY] }, mdlProfile });
      const leaf = await certify({ by: world.authority, ...bend });
      const licence = world.licence(asked, { issuer: { key: leaf, chain: [leaf.certificate] } });
      await world.answer(asked, { licence: [licence] });
      const { status, failure } = await world.session(asked);
      return status === 'completed' ? status : failure.message;
    };

    it('follow the standard, unless the configuration demands nothing', async () => {
      expect(await outcome(undefined, { name: 'Right', ...DOCUMENT_SIGNER })).to.equal('completed');
      for (const [name, bend] of [
        ['Any', {}],
        ['Not critical', { ...DOCUMENT_SIGNER, critical: false }],
        ['Other mdocs', { purposes: ['1.0.23220.4.1.2'], critical: true }],
      ] as const) {
        expect(await outcome(undefined, { name, ...bend }), name).to.include('certificate_profile');
        expect(await outcome('iso-18013-5', { name, ...bend }), name).to.include('certificate_profile');
        expect(await outcome('none', { name, ...bend }), name).to.equal('completed');
      }
      const abroad = { name: 'Abroad, C=FR', ...DOCUMENT_SIGNER };
      expect(await outcome(undefined, abroad)).to.include('issuer_country_mismatch');
      expect(await outcome('none', abroad)).to.equal('completed');
    });

    it('are never those of a web server or a reader', async () => {
      for (const usage of [WEB_SERVER, READER]) {
        expect(await outcome('none', { name: 'Other', purposes: [usage] })).to.include('certificate_profile');
      }
    });
  });

  it('name the profile of licences by one of two words', async () => {
    const body = { id: 'wrong', dcql_query: { credentials: [LICENCE_QUERY] }, mdlProfile: 'off' };
    expect((await world.admin('POST', '/verifier/config', body)).status).to.equal(400);
  });
});

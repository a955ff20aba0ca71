import { expect } from 'chai';
import { vouchesForIss, withoutForeignIss } from '../../../domain/verification/presented-issuer.ts';

const NAMES = ['URI:https://issuer.example/a', 'URI:urn:issuer:1', 'DNS:host.example', 'DNS:localhost'];

describe('the iss of a presented credential', () => {
  for (const iss of [
    'https://issuer.example/a',
    'urn:issuer:1',
    'https://host.example',
    'https://host.example/tenant',
    'https://HOST.example:8443/x',
    'http://localhost:3000/acme',
  ]) {
    it(`is vouched for by the certificate: ${iss}`, () => expect(vouchesForIss(NAMES, iss)).to.equal(true));
  }

  for (const iss of [
    'https://issuer.example',
    'https://issuer.example/a/',
    'https://issuer.example/b',
    'https://sub.host.example',
    'https://host.example.evil.example',
    'https://evil.example/?host.example',
    'https://host.example@evil.example',
    'ftp://host.example',
    'host.example',
    'DNS:host.example',
    'urn:issuer:2',
    '',
    undefined,
    ['https://host.example'],
  ]) {
    it(`is not: ${JSON.stringify(iss)}`, () => expect(vouchesForIss(NAMES, iss)).to.equal(false));
  }

  it('stays among the claims when it is vouched for, and is taken out otherwise', () => {
    const told = (iss: string) => ({ ...withoutForeignIss({ iss, name: 'Erika' }, NAMES) });
    expect(told('urn:issuer:1')).to.deep.equal({ iss: 'urn:issuer:1', name: 'Erika' });
    expect(told('urn:issuer:2')).to.deep.equal({ name: 'Erika' });
  });
});

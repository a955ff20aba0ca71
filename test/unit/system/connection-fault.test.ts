import { expect } from 'chai';
import { connectionFault, nameFault } from '../../../adapters/remote/connection-fault.ts';

const failure = (code: string) =>
  Object.assign(new Error(`10.1.2.3 internal.example secret ${code}`), { code });

describe('The reason of a call without a response', () => {
  const cases: readonly [string, string][] = [
    ['CERT_HAS_EXPIRED', 'TLS: the certificate of the server has expired'],
    ['ERR_TLS_CERT_ALTNAME_INVALID', 'TLS: the certificate of the server is for another host name'],
    ['DEPTH_ZERO_SELF_SIGNED_CERT', 'TLS: the certificate of the server is self-signed'],
    ['ERR_SSL_SSL/TLS_ALERT_HANDSHAKE_FAILURE', 'TLS: the handshake failed'],
    ['CRL_HAS_EXPIRED', 'TLS: the certificate of the server is not valid'],
    ['ECONNREFUSED', 'the connection was refused'],
    ['EHOSTUNREACH', 'there is no route to the host'],
    ['HPE_INVALID_CONSTANT', 'HTTP: the response is not valid'],
  ];
  for (const [code, reason] of cases) {
    it(`is "${reason}" for ${code}`, () => expect(connectionFault(failure(code))).to.equal(reason));
  }

  it('is found in causes, and in the attempts at several addresses', () => {
    const wrapped = new TypeError('fetch failed', { cause: failure('CERT_NOT_YET_VALID') });
    expect(connectionFault(wrapped)).to.equal('TLS: the certificate of the server is not valid yet');
    const several = new AggregateError([failure('ENETUNREACH'), failure('ECONNREFUSED')]);
    expect(connectionFault(several)).to.equal('there is no route to the network');
  });

  it('is absent for an unknown code, and never quotes the message of the error', () => {
    expect(connectionFault(failure('toString'))).to.equal(undefined);
    expect(connectionFault('text')).to.equal(undefined);
    for (const code of ['ENOTFOUND', 'ETIMEOUT', 'ECONNREFUSED', 'ESERVFAIL'])
      expect(nameFault(failure(code))).to.match(/^DNS: [a-z ]+$/);
  });
});

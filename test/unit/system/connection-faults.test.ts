import { expect } from 'chai';
import { toStoreError } from '../../../adapters/persistence/database-faults.ts';
import { connectionFault, nameFault } from '../../../adapters/remote/connection-fault.ts';
import { StoreUnavailableError } from '../../../application/ports/store.ts';
import { Failure } from '../../../domain/shared/failure.ts';

const failure = (code: string) => Object.assign(new Error(`10.1.2.3 internal.example secret ${code}`), { code });

describe('reason of a call without a response', () => {
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
    for (const code of ['ENOTFOUND', 'ETIMEOUT', 'ECONNREFUSED', 'ESERVFAIL']) expect(nameFault(failure(code))).to.match(/^DNS: [a-z ]+$/);
  });
});

const errorWith = (code: string | undefined, message = 'a driver speaks') =>
  Object.assign(new Error(message), code === undefined ? {} : { code });

describe('database driver error', () => {
  const codesByMessage: Readonly<Record<string, readonly string[]>> = {
    'the database cannot be written': ['SQLITE_FULL', 'SQLITE_BUSY', 'SQLITE_READONLY_DBMOVED', '53100'],
    'the database cannot be reached': [
      ...['SQLITE_IOERR_WRITE', 'SQLITE_CANTOPEN', '08006', '57P01', '57P02', '57P03', '25P03', '53300'],
      ...['ECONNREFUSED', 'ECONNRESET', 'ETIMEDOUT', 'EPIPE'],
    ],
    'the database takes too long': ['57014'],
  };
  for (const [message, codes] of Object.entries(codesByMessage)) {
    for (const code of codes) {
      it(`${code} means that ${message}`, () => {
        const cause = errorWith(code);
        const error = toStoreError(cause);
        expect(error).to.be.instanceOf(StoreUnavailableError);
        expect(error).to.deep.include({ message, cause });
      });
    }
  }

  it('without a code is recognized by its message', () => {
    for (const message of ['Connection terminated unexpectedly', 'Client was closed and is not queryable'])
      expect(toStoreError(errorWith(undefined, message))).to.be.instanceOf(StoreUnavailableError);
  });

  it('of any other kind is unchanged, like a value that is not an error', () => {
    const otherErrors = [errorWith('23505'), errorWith('40001'), errorWith('SQLITE_CONSTRAINT'), errorWith('42601'), 'text'];
    for (const error of [...otherErrors, new Failure('conflict')]) expect(toStoreError(error)).to.equal(error);
  });
});

import { expect } from 'chai';
import { unavailableFor } from '../../../adapters/persistence/database-faults.ts';
import { StoreUnavailable } from '../../../application/ports/store.ts';
import { Failure } from '../../../domain/shared/failure.ts';

const fault = (code: string | undefined, message = 'a driver speaks') =>
  Object.assign(new Error(message), code === undefined ? {} : { code });

describe('A fault of a driver', () => {
  const told: Readonly<Record<string, readonly string[]>> = {
    'the database cannot be written': ['SQLITE_FULL', 'SQLITE_BUSY', 'SQLITE_READONLY_DBMOVED', '53100'],
    'the database cannot be reached': [
      ...['SQLITE_IOERR_WRITE', 'SQLITE_CANTOPEN', '08006', '57P01', '57P02', '57P03', '25P03', '53300'],
      ...['ECONNREFUSED', 'ECONNRESET', 'ETIMEDOUT', 'EPIPE'],
    ],
    'the database takes too long': ['57014'],
  };
  for (const [message, codes] of Object.entries(told)) {
    for (const code of codes) {
      it(`${code} means that ${message}`, () => {
        const cause = fault(code);
        const error = unavailableFor(cause);
        expect(error).to.be.instanceOf(StoreUnavailable);
        expect(error).to.deep.include({ message, cause });
      });
    }
  }

  it('without a code is known by its words', () => {
    for (const message of ['Connection terminated unexpectedly', 'Client was closed and is not queryable'])
      expect(unavailableFor(fault(undefined, message))).to.be.instanceOf(StoreUnavailable);
  });

  it('of any other kind stays what it is, and so does what is none', () => {
    const others = [fault('23505'), fault('40001'), fault('SQLITE_CONSTRAINT'), fault('42601'), 'text'];
    for (const error of [...others, new Failure('conflict')]) expect(unavailableFor(error)).to.equal(error);
  });
});

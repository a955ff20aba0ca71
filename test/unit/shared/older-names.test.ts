import { expect } from 'chai';
import {
  isOlderName,
  olderNameOf,
  withCurrentNames,
  withKeyReferences,
} from '../../../domain/shared/older-names.ts';

const MEMBERS = ['keyChainId', 'accessKeyChainId', 'entities', 'note'];
const read = (document: unknown, known = MEMBERS) => withCurrentNames(document, known);
const written = (document: unknown, known = MEMBERS) => read(document, known).value;
const FAULT = 'certId and keyChainId name the same thing; give one, or both alike';

describe('A document in the vocabulary of certificates', () => {
  it('is read as one of key chains', () => {
    expect(written({ certId: 'a', accessCertId: 'b', note: 'n' })).to.deep.equal({
      keyChainId: 'a',
      accessKeyChainId: 'b',
      note: 'n',
    });
    expect(written({ keyChainId: 'a' })).to.deep.equal({ keyChainId: 'a' });
  });

  it('may have both names where they say the same', () => {
    expect(read({ certId: 'a', keyChainId: 'a' })).to.deep.equal({ value: { keyChainId: 'a' }, errors: [] });
    expect(read({ certId: 'a', keyChainId: 'b' }).errors).to.deep.equal([{ path: 'certId', message: FAULT }]);
  });

  it('keeps a name that would become one that it cannot have', () => {
    expect(written({ certId: 'a', issuerCertId: 'b' })).to.deep.equal({ keyChainId: 'a', issuerCertId: 'b' });
    expect(written({ certId: 'a' }, ['note'])).to.deep.equal({ certId: 'a' });
  });

  it('has them in the entries of its lists, too', () => {
    const entities = [{ issuerCertId: 'a' }, 'text', { revocationCertId: 'b', certId: 'c', keyChainId: 'd' }];
    const { value, errors } = read({ entities });
    expect(value).to.deep.equal({
      entities: [{ issuerKeyChainId: 'a' }, 'text', { revocationKeyChainId: 'b', keyChainId: 'd' }],
    });
    expect(errors).to.deep.equal([{ path: 'entities.2.certId', message: FAULT }]);
    const trustAnchors = [{ certId: 'a' }];
    expect(written({ trustAnchors }), 'a list that it cannot have').to.deep.equal({ trustAnchors });
  });

  for (const other of [
    null,
    'text',
    1,
    [{ certId: 'a' }],
    { entities: 'text' },
    { entities: { certId: 'a' } },
  ]) {
    it(`is left alone where it is something else: ${JSON.stringify(other)}`, () => {
      expect(written(other)).to.deep.equal(other);
    });
  }

  it('is answered by both names', () => {
    expect(withKeyReferences({ keyChainId: 'a', note: 'n' })).to.deep.equal({
      keyChainId: 'a',
      certId: 'a',
      note: 'n',
    });
    expect(withKeyReferences({ keyChainId: undefined })).to.have.property('certId', undefined);
    expect(withKeyReferences({ note: 'n' })).to.deep.equal({ note: 'n' });
  });

  it('has one older name of each', () => {
    expect(['keyChainId', 'issuerKeyChainId', 'certId', 'note'].map(olderNameOf)).to.deep.equal([
      'certId',
      'issuerCertId',
      undefined,
      undefined,
    ]);
    const known = (name: string) => isOlderName(name, ['keyChainId']);
    expect(['certId', 'accessCertId', 'keyChainId'].map(known)).to.deep.equal([true, false, false]);
  });
});

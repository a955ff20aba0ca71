import { expect } from 'chai';
import { readExternalIdentity } from '../../../domain/clients/external-identity.ts';
import { IMPORTER } from '../../../domain/clients/service-names.ts';

const RULES = { subjectClaim: 'tenant_id', rolesClaim: undefined };
const read = (client_id: string) => readExternalIdentity({ tenant_id: 'acme', client_id }, RULES)?.clientId;

describe('The client that a token of an external provider names', () => {
  it('may have any name of RFC 6749', () => {
    for (const name of ['shop', 'a b', 'https://shop.example/id?x=1', '~!"#', 'importer', 'x'.repeat(256)]) {
      expect(read(name)).to.equal(name);
    }
  });

  it('has no other characters in it, which a log or a database would stumble over', () => {
    for (const name of [
      'a\u0000b',
      'a\nb',
      '\u007f',
      'shöp',
      'a\u00a0b',
      '\u202eshop',
      '',
      'x'.repeat(257),
    ]) {
      expect(read(name), JSON.stringify(name)).to.equal(undefined);
    }
  });

  it('is not what the import of configuration files is called, or what reads like it', () => {
    for (const name of [IMPORTER, 'Folder Import', 'folder  import', ' folder import', 'folder import ']) {
      expect(read(name), name).to.equal(undefined);
    }
  });
});

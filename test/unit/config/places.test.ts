import { expect } from 'chai';
import { isFolder, placeOf, STAGES, shortName } from '../../../domain/configuration-files/folder.ts';
import { SecretNames } from '../../../domain/configuration-files/placeholder.ts';

describe('A file in the folder of a tenant', () => {
  it('is known by its place', () => {
    expect(placeOf('keys/signing.json')).to.deep.equal({
      kind: 'key-chain',
      name: 'signing',
      format: 'json',
    });
    expect(placeOf('keys/signing.yaml')).to.deep.equal({
      kind: 'key-chain',
      name: 'signing',
      format: 'yaml',
    });
    expect(placeOf('keys/signing.yml')?.format).to.equal('yaml');
    for (const path of [
      'keys/a/b.json',
      'key/signing.json',
      'keys/signing.txt',
      'keys/signing',
      'signing.json',
      'other.json',
      '',
    ]) {
      expect(placeOf(path), path).to.equal(undefined);
    }
  });

  it('stands in a folder that can have some', () => {
    for (const path of ['keys', 'issuance', '']) expect(isFolder(path), path).to.equal(true);
    for (const path of ['key', 'keys/a', 'other', 'issu']) expect(isFolder(path), path).to.equal(false);
    const nested = STAGES.flat().map(shortName);
    expect(nested).to.include('key-chain').and.not.include('issuance-configuration');
  });

  it('has a variable of its own for each secret', () => {
    const names = new SecretNames('acme-2');
    expect([
      names.next('pid', 'webhook key'),
      names.next('pid', 'webhook key'),
      names.next('pid', 'webhook-key'),
    ]).to.deep.equal([...['ACME_2_PID_WEBHOOK_KEY', 'ACME_2_PID_WEBHOOK_KEY_2', 'ACME_2_PID_WEBHOOK_KEY_3']]);
    expect(new SecretNames('2nd').next('a', 'b')).to.equal('_2ND_A_B');
  });
});

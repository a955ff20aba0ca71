import { expect } from 'chai';
import {
  effectiveIssuance,
  type IssuanceConfiguration,
  withDefaults,
} from '../../../domain/issuance/issuance-configuration.ts';
import { anIssuance } from './kit.ts';

describe('An issuance configuration', () => {
  it('that was stored before a member existed has its default, and keeps what it says', () => {
    const time = new Date('2026-01-01T00:00:00Z');
    const stored = {
      id: 'default',
      display: [{ name: 'Acme', locale: 'en' }],
      batchSize: 7,
      dPopRequired: false,
      createdAt: time,
      updatedAt: time,
    } as unknown as IssuanceConfiguration;
    expect(effectiveIssuance(withDefaults(stored), null)).to.deep.equal({ ...anIssuance(), ...stored });
    expect(withDefaults(stored)).to.deep.include({
      batchSize: 7,
      authServers: [],
      requestEncryption: 'optional',
    });
  });
});

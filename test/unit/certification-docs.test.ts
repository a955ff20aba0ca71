import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { CredentialConfigurationBody } from '../../domain/issuance/configuration.ts';
import { IssuanceConfigurationBody } from '../../domain/issuance/issuance-configuration.ts';
import { PresentationConfigurationBody } from '../../domain/verification/configuration.ts';

const PAGE = readFileSync(new URL('../../docs/certification.md', import.meta.url), 'utf8');

/** Names in backticks of the first column of the settings table. */
function settingsOfIssuers(): string[] {
  const [, table = ''] = PAGE.split('| Setting | Value | Why |');
  const rows = table.split('\n\n')[0]?.split('\n') ?? [];
  return rows.flatMap((row) => {
    const [, first = ''] = row.split('|');
    return [...first.matchAll(/`(\w+)`/g)].map(([, name = '']) => name);
  });
}

describe('docs/certification.md', () => {
  it('names settings of issuers that exist', () => {
    const known = [
      ...Object.keys(IssuanceConfigurationBody.shape),
      ...Object.keys(CredentialConfigurationBody.shape),
    ];
    const names = settingsOfIssuers();
    expect(names).to.have.length.above(10);
    expect(known).to.include.members(names);
  });

  it('names settings of verifiers that exist', () => {
    const [, section = ''] = PAGE.split('## Plans for verifiers');
    const properties = Object.keys(PresentationConfigurationBody.shape);
    for (const name of [
      ...['trustAnchors', 'redirectUri', 'responseMode', 'clientIdPrefix', 'requestUriMethod'],
      ...['mdlProfile', 'clientName', 'logoUri'],
    ]) {
      expect(section).to.include(name);
      expect(properties).to.include(name);
    }
  });

  it('names the element ids of the approval page', () => {
    const page = readFileSync(new URL('../../adapters/http/pages/consent-page.ts', import.meta.url), 'utf8');
    for (const id of ['approve', 'deny']) {
      expect(PAGE).to.include(`\`${id}\``);
      expect(page).to.include(`id="${id}"`);
    }
  });
});

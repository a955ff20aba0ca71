import type { TenantReader } from '../application/ports/store.ts';
import { withDefaults } from '../domain/issuance/issuance-configuration.ts';
import { configurationOf } from '../domain/trust-lists/list-configuration.ts';
import type { ImportDocument } from './import-documents.ts';
import { isSame, type Outcome, tenantIdOf, unlessSame } from './import-outcome.ts';
import type { ImportTools } from './import-tools.ts';

export async function importRegistrar(
  tools: ImportTools,
  document: ImportDocument<'registrar'>,
): Promise<Outcome> {
  const { body } = document;
  const caller = await tools.callerOf(tenantIdOf(document));
  const known = await find(tools, document, (own) => own.registrarConfiguration.find('default'));
  return unlessSame(known, body, () => tools.saveRegistrar.execute(caller, body));
}

export async function importPresentation(
  tools: ImportTools,
  document: ImportDocument<'presentation'>,
): Promise<Outcome> {
  const { id, body } = document;
  const caller = await tools.callerOf(tenantIdOf(document));
  const known = await find(tools, document, (own) => own.presentationConfigurations.find(id));
  return unlessSame(known, body, () => tools.savePresentation.execute(caller, body));
}

/** A list that is as it should be gets no release. */
export async function importTrustList(
  tools: ImportTools,
  document: ImportDocument<'trust-list'>,
): Promise<Outcome> {
  const { id, body } = document;
  const caller = await tools.callerOf(tenantIdOf(document));
  const known = await find(tools, document, (own) => own.trustLists.find(id));
  if (known === undefined) {
    await tools.createTrustList.execute(caller, body);
    return 'created';
  }
  const stored = configurationOf(id, { ...known, entities: [...known.entities] });
  if (isSame(stored, configurationOf(id, body))) return 'unchanged';
  await tools.replaceTrustList.execute(caller, id, body);
  return 'changed';
}

export async function importIssuance(
  tools: ImportTools,
  document: ImportDocument<'issuance'>,
): Promise<Outcome> {
  const { body } = document;
  const caller = await tools.callerOf(tenantIdOf(document));
  const known = await find(tools, document, (own) => own.issuanceConfiguration.find('default'));
  const stored = known && withDefaults(known);
  return unlessSame(stored, body, () => tools.writeIssuance.execute(caller, body));
}

export async function importCredential(
  tools: ImportTools,
  document: ImportDocument<'credential'>,
): Promise<Outcome> {
  const { id, body } = document;
  const caller = await tools.callerOf(tenantIdOf(document));
  const known = await find(tools, document, (own) => own.credentialConfigurations.find(id));
  return unlessSame(known, body, () => tools.writeCredential.execute(caller, body));
}

function find<T>(
  tools: ImportTools,
  document: ImportDocument,
  read: (own: TenantReader) => Promise<T>,
): Promise<T> {
  return tools.store.forTenant(tenantIdOf(document), read);
}

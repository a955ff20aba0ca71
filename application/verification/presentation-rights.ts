import { assertOwnNames, type Named } from '../../domain/clients/own-names.ts';
import { certificateFor } from '../../domain/registrar/registration-certificate-request.ts';
import { Failure } from '../../domain/shared/failure.ts';
import { canonicalJson } from '../../domain/shared/json.ts';
import { accessKeyChainsOf } from '../../domain/verification/access-key-chains.ts';
import type {
  PresentationConfiguration,
  PresentationConfigurationBody,
} from '../../domain/verification/configuration.ts';
import type { TenantCaller } from '../caller.ts';

/**
 * A registration certificate that is to be obtained is ordered at the registrar, in the name of the tenant and for what the
 * query asks.
 * @throws Failure `forbidden` when the caller may not order, and would.
 */
export function assertMayOrder(
  { roles }: Pick<TenantCaller, 'roles'>,
  before: PresentationConfigurationBody | undefined,
  after: PresentationConfigurationBody,
): void {
  if (after.registrationCert?.body === undefined || roles.includes('registrar:manage')) return;
  const ordered = ({ registrationCert, dcql_query, purpose }: PresentationConfigurationBody) =>
    canonicalJson({
      ordered: registrationCert && certificateFor(registrationCert, purpose).body,
      dcql_query,
    });
  if (before !== undefined && ordered(before) === ordered(after)) return;
  throw new Failure(
    'forbidden',
    'registrationCert: a certificate is ordered at the registrar with the role registrar:manage; name one by id or jwt',
  );
}

/** @throws Failure `forbidden` for a restricted client that asks in the name of another configuration. */
export function assertOwnAccessKey(
  { allowedPresentationConfigs }: TenantCaller,
  after: PresentationConfigurationBody,
  before: PresentationConfiguration | undefined,
  all: readonly PresentationConfiguration[],
): void {
  // By whichever member it is named.
  const named = (body: PresentationConfigurationBody): Named => ({
    id: body.id,
    names: { accessKeyChainId: accessKeyChainsOf(body) },
  });
  assertOwnNames(allowedPresentationConfigs, named(after), before && named(before), all.map(named));
}

import type { IssuedRegistrationCertificate, RelyingParty } from '../../domain/registrar/registrar-api.ts';
import {
  completeRegistration,
  type RegisteredUse,
  type RegistrationBody,
  type RegistrationCertificateRequest,
} from '../../domain/registrar/registration-certificate-request.ts';
import { invalidInput } from '../../domain/shared/failure.ts';
import type { Registrar, RegistrarAccount } from '../ports/registrar.ts';
import { registrarFailure } from './registrar-failures.ts';

export type Order = RegisteredUse & {
  readonly account: RegistrarAccount;
  readonly request: Pick<RegistrationCertificateRequest, 'id' | 'body'>;
  /** Where the request stands in the caller's document; empty for the document itself. */
  readonly path: string;
};

/**
 * Has the registrar look a registration certificate up, or issue one.
 * @throws Failure `invalid_input` for what the registrar does not know or refuses, `unavailable` when it does not
 *   answer.
 */
export async function obtainFromRegistrar(registrar: Registrar, order: Order): Promise<IssuedRegistrationCertificate> {
  const { account, request } = order;
  try {
    return request.id === undefined
      ? await create(registrar, order, request.body ?? {})
      : await find(registrar, account, request.id, at(order.path, 'id'));
  } catch (error) {
    throw registrarFailure(error, order.path);
  }
}

async function find(registrar: Registrar, account: RegistrarAccount, id: string, path: string): Promise<IssuedRegistrationCertificate> {
  const issued = await registrar.findRegistrationCertificate(account, id);
  if (issued === undefined) throw invalidInput(path, 'The registrar has no registration certificate of this id.');
  if (issued.revoked) throw invalidInput(path, 'The registrar has revoked this registration certificate.');
  return issued;
}

async function create(
  registrar: Registrar,
  { account, query, issued: types, path }: Order,
  wanted: RegistrationBody,
): Promise<IssuedRegistrationCertificate> {
  const body = completeRegistration(wanted, account.configuration.registrationCertificateDefaults, { query, issued: types });
  if ('missing' in body) {
    const member = at(at(path, 'body'), body.missing);
    throw invalidInput(member, `A registration certificate needs ${body.missing}, here or in the defaults.`);
  }
  const { id: rpId } = firstOf(await registrar.relyingParties(account), path);
  const issued = await registrar.issueRegistrationCertificate(account, { ...body, rpId });
  if (issued.revoked) throw invalidInput(path, 'The registrar has revoked the certificate that it issued.');
  return issued;
}

/** @throws Failure `invalid_input` */
export function firstOf([first]: readonly RelyingParty[], path: string): RelyingParty {
  if (first === undefined) throw invalidInput(path, 'The account at the registrar has no relying party yet.');
  return first;
}

function at(path: string, member: string): string {
  return path === '' ? member : `${path}.${member}`;
}

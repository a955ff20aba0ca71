import { access } from './access.ts';
import { administration } from './administration.ts';
import { audit } from './audit.ts';
import { interactiveAuthorization } from './interactive-authorization.ts';
import { issuance } from './issuance.ts';
import { registrar } from './registrar.ts';
import { service } from './service.ts';
import { trustLists } from './trust-lists.ts';
import { verification } from './verification.ts';

/** One module per feature; adapters are bound by `platform.ts`. */
export const modules = [
  access,
  administration,
  issuance,
  interactiveAuthorization,
  verification,
  trustLists,
  registrar,
  audit,
  service,
];

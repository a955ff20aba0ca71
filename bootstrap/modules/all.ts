import { access } from './access.ts';
import { issuance } from './issuance.ts';

/** One module per feature; adapters are bound by `platform.ts`. */
export const modules = [access, issuance];

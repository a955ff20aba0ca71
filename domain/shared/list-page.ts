import { z } from 'zod';

export const MAX_PAGE_ENTRIES = 500;

export const pageLimit = (initial: number) => z.coerce.number().int().min(1).max(MAX_PAGE_ENTRIES).default(initial);

const matching = (form: RegExp, text = z.string()) => text.regex(form, 'use the cursor of the link of the previous page');
const described = <T extends z.ZodType>(cursor: T) => cursor.optional().describe('From the `next` link of the previous page');

export const textCursor = (form: RegExp, text?: z.ZodString) => described(matching(form, text));
export const numberCursor = (form: RegExp) => described(matching(form).transform(Number));

// Searches in the episodic memory, and entries for them to find.
import { createEpisode } from './episodes.mjs';

/** Stores an entry dated June 1; returns the response body. */
export const store = (api, changes, options) => createEpisode(api, { created_at: '2026-06-01T00:00:00Z', ...changes }, options);

/** Searches; returns the response body. */
export const search = async (api, body, options) => (await api.post('/v1/episodic/search', body, { status: 200, ...options })).json;

/** A vector of `dim` numbers: 1 at `position`, the numbers of `also` at theirs, 0 elsewhere. */
export const axis = (dim, position, also = {}) => Object.assign(Array.from({ length: dim }, (_, i) => Number(i === position)), also);

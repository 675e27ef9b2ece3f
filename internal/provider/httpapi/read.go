package httpapi

import (
	"io"
	"net/http"
)

// maxBody is how much of an answer is read. A bucket takes a few hundred bytes.
const maxBody = 64 << 10

// readReply reads a body to its end, so that the connection can be used again,
// but no further than maxBody: then the connection is given up.
func readReply(response *http.Response) (reply, error) {
	if response.StatusCode == http.StatusSwitchingProtocols {
		// What follows is a connection, which no timeout of the call ends.
		_ = response.Body.Close()
		return reply{}, nil
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxBody+1))
	// What closing says does not matter: all there is was read.
	_ = response.Body.Close()
	if err != nil {
		return reply{}, err
	}
	if len(body) > maxBody {
		return reply{tooLarge: true}, nil
	}
	return reply{body: body}, nil
}
